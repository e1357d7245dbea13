"""The plugin is built (preset release) before these tests run; without PyTorch they are skipped."""

import gc
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Of the budgets, and of what the programs and the operators of op_db work on: "cuda" to try a GPU.
os.environ.setdefault("COOP_DEVICE", "cpu")
# What makes cuBLAS repeat itself, and small enough for budgets of a few MiB.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
os.environ.setdefault("CUBLASLT_WORKSPACE_SIZE", "64")
os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors and a busy machine: more threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def deterministic():
    """Bit for bit the same every time, on the device that is tried."""
    import torch

    torch.use_deterministic_algorithms(True)
    torch.set_default_device(os.environ["COOP_DEVICE"])
    yield
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def little_to_compile():
    """torch.compile without what differs between machines: no trial of what the processor can do,
    no headers for many kernels, no further processes."""
    import torch
    from torch._inductor import config

    settings = {"cpp.vec_isa_ok": False, "compile_threads": 1}
    if hasattr(config, "cpp_cache_precompile_headers"):
        settings["cpp_cache_precompile_headers"] = False
    with config.patch(settings):
        yield
    torch._dynamo.reset()
    gc.collect()  # networks and what was compiled for them hold each other
