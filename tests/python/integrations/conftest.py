"""Examples and their frameworks, on the CPU and without a network."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))
os.environ.setdefault("COOP_DEVICE", "cpu")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["COLUMNS"] = "80"  # for progress bars
sys.path.append(str(ROOT / "examples"))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As the examples have in processes of their own: more would add up in another order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
