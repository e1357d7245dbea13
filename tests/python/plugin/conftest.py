"""The plugin is built (preset release) before these tests run; without PyTorch they are skipped."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors and a busy machine: more threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
