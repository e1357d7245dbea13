"""The plugin is built (preset release) before these tests run; without PyTorch they are skipped."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))

try:
    import torch
except ImportError:
    collect_ignore_glob = ["test_*.py"]
    torch = None


def pytest_report_header():
    if torch is None:
        return "tests of the plugin are left out: PyTorch is not installed (make setup)"
    return f"plugin: {os.environ['COOP_PLUGIN']}, PyTorch {torch.__version__}"


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors and a busy machine: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
