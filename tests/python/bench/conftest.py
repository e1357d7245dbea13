"""What the tests of `coop bench` share."""

import os
from pathlib import Path

import pytest
from coop.bench.grid import Wanted

ROOT = Path(__file__).resolve().parents[3]
os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))


@pytest.fixture(autouse=True)
def for_processes(monkeypatch):
    """That are started, wherever."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def wanted() -> Wanted:
    return Wanted(
        networks=("bilstm", "spos"),
        device="cpu",
        ratios=(0.8, 0.5),
        policies=("coop", "dtr"),
        peers=("checkpoint",),
        timed=2,
        warm_up=2,
    )
