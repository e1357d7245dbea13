"""Random programs leave every number as it is without a budget (random_programs.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

HERE = Path(__file__).parent
SCALE = os.environ.get("COOP_TEST_SCALE")
BLOCKS = {"full": 100, "slice": 1}.get(SCALE, 4)
SEEDS = 8  # in each block


@pytest.mark.skipif(os.environ.get("COOP_DEVICE", "cpu") != "cpu", reason="they take arrays")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_everything_is_as_without(block):
    """What differs says its seed: python -m random_programs --seed <that> --verbose

    In a process of its own: gradients of gradients go in circles that nobody collects, with all
    that they hold."""
    command = [sys.executable, "-m", "random_programs", "--count", str(SEEDS)]
    python = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [*command, "--seed", str(block * SEEDS)],
        env={**os.environ, "PYTHONPATH": python},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.splitlines()[-1].split()[0]) > 100 * SEEDS
