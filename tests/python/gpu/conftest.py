"""These need a GPU, and say so where there is none. `make gpu-test` runs them all."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))
# What makes cuBLAS repeat itself, and small enough for budgets of a few MiB.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
os.environ.setdefault("CUBLASLT_WORKSPACE_SIZE", "64")


def pytest_collection_modifyitems(items):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
    if torch.cuda.is_available():
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="PyTorch sees no GPU here"))


@pytest.fixture(autouse=True)
def deterministic():
    import torch

    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
