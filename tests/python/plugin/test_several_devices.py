"""Several devices with a budget each: tests/plugin/second_device.cpp has devices that need no GPU.

They are tried in a process of their own: to PyTorch they are what it would run on by itself.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

ROOT = Path(__file__).resolve().parents[3]
CASES = sorted((Path(__file__).parent / "second_device").glob("cases_*.py"))


@pytest.mark.parametrize("cases", CASES, ids=lambda it: it.stem.removeprefix("cases_"))
def test_several_devices(cases):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cases]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
