"""The example that trains a synthetic network inside smaller and smaller budgets."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "build/release/examples/coop-engine-demo"


@pytest.fixture(autouse=True)
def demo_is_built():
    assert DEMO.exists(), "the demo is not built: make build"


def test_demo_writes_json():
    arguments = ["--network", "residual", "--budgets", "90", "--policies", "coop", "--json"]
    printed = subprocess.run([DEMO, *arguments], check=True, capture_output=True, text=True).stdout
    (result,) = json.loads(printed)
    assert result["status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--budgets", "5,3"], 1, "does not fit: the smallest budget that serves is"),
        (["--budgets", "500"], 105, "--budgets: Value 500 not in range"),
        (["--layers", "many"], 105, "--layers: Value many not in range"),
        (["--network", "perceptron"], 105, "--network: perceptron not in"),
        (["--policies", "coop,oracle"], 105, "--policies: oracle not in"),
        (["--nonsense"], 109, "--nonsense"),
    ],
)
def test_demo_refuses_bad_arguments(arguments, code, says):
    run = subprocess.run([DEMO, *arguments], capture_output=True, text=True)
    assert run.returncode == code
    assert says in run.stderr
    assert not run.stdout
