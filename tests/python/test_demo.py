"""The training demo, in small."""

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

ROOT = Path(__file__).resolve().parents[2]


def test_both_runs_are_equal_and_one_took_half_the_memory():
    command = ["scripts/demo.sh", "--json", "--smoke"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    demo = json.loads(done.stdout)
    plain, budgeted = demo["plain"], demo["budget"]
    assert demo["equal"] is True
    assert plain["losses"] == budgeted["losses"]
    assert plain["digest"] == budgeted["digest"]
    assert budgeted["budget_bytes"] <= plain["peak_bytes"] / 2
    stats = budgeted["stats"]
    assert stats["peak_bytes"] <= budgeted["budget_bytes"]
    assert stats["peak_bytes"] < budgeted["peak_bytes"] < plain["peak_bytes"]
    assert stats["evictions"] > 0
    assert stats["recomputations"] > 0
    assert "with half the memory: step 3 of 3" in done.stderr  # progress
