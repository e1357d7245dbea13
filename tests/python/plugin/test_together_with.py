"""What `coop doctor` says of others, where their ways to a tensor can be gone without a GPU."""

import ctypes
import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402

HERE = Path(__file__).parent
PATH = str(HERE.parents[2] / "python")


@pytest.mark.skipif(not torch.distributed.is_available(), reason="without torch.distributed")
def test_sharded_parameters_over_gloo(tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, HERE / "fsdp.py", str(rank), tmp_path],
            env=os.environ | {"PYTHONPATH": PATH},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [it.communicate(timeout=120)[1] for it in processes]
    finally:
        for it in processes:
            it.kill()
    assert [it.returncode for it in processes] == [0, 0], said
    assert "coop.register" not in "".join(said)  # there is nothing that a user could declare


ZERO = """
import sys, torch, deepspeed
from contextlib import nullcontext
from coop import _plugin
from torch import nn
torch.set_num_threads(1)
deepspeed.init_distributed("gloo")
small = ("reduce", "allgather", "stage3_prefetch")

def train(stage, budget):
    torch.manual_seed(5)
    layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(64, 4))
    zero = {"stage": stage, "sub_group_size": 20000} | {f"{it}_bucket_size": 20000 for it in small}
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-2),
        config={"train_batch_size": 256, "zero_optimization": zero,
                "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False},
    )
    torch.manual_seed(1)
    losses = []
    with budget:
        for _ in range(3):
            loss = engine(torch.randn(256, 64)).square().mean()
            engine.backward(loss)
            engine.step()
            losses.append(loss.item())
        with deepspeed.zero.GatheredParameters(list(model.parameters()), enabled=stage == 3):
            parameters = [it.detach().clone() for it in model.parameters()]
    return losses, parameters

for stage in range(4):
    losses, parameters = train(stage, nullcontext())
    ours, stressed = train(stage, _plugin.budget(64 << 20, stress=True, small_limit=0))
    assert ours == losses, stage
    assert all(torch.equal(a, b) for a, b in zip(parameters, stressed, strict=True)), stage
    assert _plugin.stats()["evictions"] > 0
"""


def test_zero_of_deepspeed(tmp_path):
    """All stages, in one process, with PyTorch's Adam: its own write where nobody sees it."""
    if importlib.util.find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed")
    one = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_SIZE": "1"}
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "DS_ACCELERATOR": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", ZERO],
        env=os.environ | {"PYTHONPATH": PATH} | one | where,
        cwd=tmp_path,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


TRITON = """
import torch, triton, triton.language as tl
from coop import _plugin

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

with _plugin.budget(16 << 20, stress=True, small_limit=0):
    x = torch.arange(20_000.0) + 1
    y = torch.empty_like(x) + 0
    assert _plugin.stats()["evictions"] > 0
    double[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    z = y * 3
    del x
    wanted = torch.arange(20_000.0) + 1
    assert torch.equal(y, wanted * 2) and torch.equal(z, wanted * 6)
"""


def test_a_triton_kernel(tmp_path):
    """In Triton's interpreter, which asks for addresses as its launcher does."""
    pytest.importorskip("triton", reason="Triton is not installed")
    program = tmp_path / "kernel.py"  # Triton reads its source
    program.write_text(TRITON)
    done = subprocess.run(
        [sys.executable, program],
        env=os.environ | {"PYTHONPATH": PATH, "TRITON_INTERPRET": "1"},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_library_that_is_given_addresses():
    """As bitsandbytes calls its kernels."""
    with _plugin.budget(16 << 20, stress=True, small_limit=0):
        x = torch.arange(20_000.0) + 1
        y = torch.zeros_like(x) + 0
        before = y * 2
        assert _plugin.stats()["evictions"] > 0
        ctypes.memmove(ctypes.c_void_p(y.data_ptr()), ctypes.c_void_p(x.data_ptr()), x.nbytes)
        wanted = torch.arange(20_000.0) + 1
        assert torch.equal(y, wanted)
        assert torch.equal(y * 3, wanted * 3)
        assert torch.equal(before, torch.zeros(20_000))  # made from what was there before
        with pytest.raises(coop.OutOfMemory):
            torch.zeros(1 << 25)
        held = {it.what: it.bytes for it in coop.last_oom().held}
        assert held["whose address is known outside"] >= x.nbytes + y.nbytes
