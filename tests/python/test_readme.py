"""What the README shows is what the programs print."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "build/release/examples/coop-engine-demo"


@pytest.fixture(autouse=True)
def demo_is_built():
    assert DEMO.exists(), "the demo is not built: make build"


def shown(readme, name):
    """The code block between <!-- demo: name --> and <!-- /demo -->."""
    found = re.search(rf"<!-- demo: {name} -->\n```\n(.*?)```\n<!-- /demo -->", readme, re.S)
    assert found, f"the README has no block for {name}"
    return found.group(1)


def without_timings(text):
    """The table of search times is real time, which differs from run to run."""
    return re.sub(r"(Search time:[^\n]*\n)(?:[^\n]+\n)+", r"\1", text)


def test_demo_prints_what_the_readme_shows():
    printed = subprocess.run([DEMO], check=True, capture_output=True, text=True).stdout
    readme = (ROOT / "README.md").read_text()
    assert without_timings(shown(readme, "coop-engine-demo")) == without_timings(printed)


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
