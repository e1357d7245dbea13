"""Budgets for the host and a GPU, and for two GPUs, at the same time."""

from contextlib import ExitStack

import coop
import pytest
import torch
from coop import _plugin
from torch import nn
from torch.nn import functional

MIB = 1 << 20
TWO_GPUS = pytest.mark.skipif(
    torch.cuda.device_count() < 2,
    reason=f"two GPUs are needed, and PyTorch sees {torch.cuda.device_count()}",
)
PAIRS = [
    pytest.param(("cpu", "cuda:0"), id="cpu-gpu"),
    pytest.param(("cuda:0", "cpu"), id="gpu-cpu"),
    pytest.param(("cuda:0", "cuda:1"), id="gpu-gpu", marks=TWO_GPUS),
    pytest.param(("cuda:1", "cuda:0"), id="gpu-gpu-backwards", marks=TWO_GPUS),
]


def stress(device, nbytes=512 * MIB):
    return _plugin.budget(nbytes, device=device, stress=True, small_limit=0)


def stage(width):
    layers = []
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.Tanh(), nn.Dropout(0.1)]
    return nn.Sequential(*layers)


class Stages(nn.Module):
    """Each device has one; activations are copied from one to the next."""

    def __init__(self, devices):
        super().__init__()
        self.devices = devices
        self.stages = nn.ModuleList(stage(256).to(it) for it in devices)

    def forward(self, x):
        for device, one in zip(self.devices, self.stages, strict=True):
            x = one(x.to(device))
        return x


def train(devices, budgets=list, *, steps=4, rows=2048):
    """Every number that is left."""
    torch.manual_seed(17)
    left = []
    model = Stages(devices)
    with ExitStack() as stack:
        for it in budgets():
            stack.enter_context(it)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(steps):
            x = torch.randn(rows, 256)
            targets = torch.randint(0, 256, (rows,)).to(devices[-1])
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), targets)
            loss.backward()
            optimizer.step()
            left.append(loss.detach())
    left += [*model.parameters(), *(it.grad for it in model.parameters())]
    for state in optimizer.state.values():
        left += [it for it in state.values() if isinstance(it, torch.Tensor)]
    left += [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    return [it.detach().cpu() for it in left]


def assert_same(a, b):
    assert len(a) == len(b)
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("devices", PAIRS)
def test_two_stages_in_stress(devices):
    wanted = train(devices)
    for order in (devices, devices[::-1]):
        assert_same(train(devices, lambda order=order: [stress(it) for it in order]), wanted)
        for it in devices:
            assert coop.stats(it).evictions > 100
            assert coop.stats(it).recomputations > 50


@pytest.mark.parametrize("devices", PAIRS)
def test_two_stages_in_little_memory(devices):
    wanted = train(devices)
    ample = {it: 1 << 30 for it in devices}
    assert_same(train(devices, lambda: [coop.budget(ample)]), wanted)
    little = {it: int(coop.stats(it).peak_bytes * 0.85) for it in devices}
    assert_same(train(devices, lambda: [coop.budget(little)]), wanted)
    for it in devices:
        assert coop.stats(it).peak_bytes <= little[it]
    assert sum(coop.stats(it).evictions for it in devices) > 0


@pytest.mark.parametrize("current", [0, pytest.param(1, marks=TWO_GPUS)])
def test_whatever_gpu_is_the_current_one(current):
    devices = ("cuda:0", f"cuda:{torch.cuda.device_count() - 1}")[: torch.cuda.device_count()]
    if len(devices) == 1:
        devices = ("cpu", "cuda:0")
    wanted = train(devices)
    with torch.cuda.device(current):
        assert_same(train(devices, lambda: [stress(it) for it in devices]), wanted)


@pytest.mark.parametrize("devices", PAIRS)
@pytest.mark.parametrize("non_blocking", [False, True])
def test_writes_from_one_to_the_other(devices, non_blocking):
    to, of = devices
    numbers = torch.arange(100_000.0)
    with stress(to), stress(of):
        a = numbers.to(to) + 1
        b = numbers.to(of) * 3
        y, z = a * 2, b + 1
        last = y.tanh().tanh()
        a.copy_(b, non_blocking=non_blocking)
        copied = y.to(of, non_blocking=non_blocking)
        torch.cuda.synchronize()  # the host reads what such a copy writes, as without coop
        b.add_(copied)
        torch.cuda.synchronize()
        assert torch.equal(a.cpu(), numbers * 3)
        assert torch.equal(y.cpu(), numbers * 2 + 2)
        assert torch.equal(z.cpu(), numbers * 3 + 1)
        assert torch.equal(b.cpu(), numbers * 5 + 2)
        assert torch.equal(last, ((numbers + 1) * 2).to(to).tanh().tanh())


@pytest.mark.parametrize("devices", PAIRS)
def test_out_of_memory_is_of_one(devices):
    small, other = devices
    with coop.budget({small: "64MiB", other: "256MiB"}):
        x = torch.ones(MIB, device=other) + 1
        with pytest.raises(coop.OutOfMemory, match=f"64 MiB for {small}"):
            torch.zeros(32 * MIB, device=small)
        assert coop.last_oom().device == small
        with pytest.raises(coop.OutOfMemory, match=f"64 MiB for {small}"):
            torch.ones(32 * MIB, device=other).to(small)
        assert torch.zeros(32 * MIB, device=other).sum().item() == 0
        assert x.sum().item() == 2 * MIB
        assert (torch.zeros(MIB, device=small) + 1).sum().item() == MIB


@pytest.mark.parametrize("devices", PAIRS)
def test_one_ends_before_the_other(devices):
    a, b = (stress(it) for it in devices)
    a.__enter__()
    b.__enter__()
    x = torch.arange(100_000.0, device=devices[0]) + 1
    y = x.to(devices[1]) * 2
    a.__exit__(None, None, None)
    assert torch.equal((y + x.to(devices[1])).cpu(), (torch.arange(100_000.0) + 1) * 3)
    x.zero_()
    b.__exit__(None, None, None)
    assert torch.equal(y.cpu(), (torch.arange(100_000.0) + 1) * 2)
    assert not torch.ops.coop.is_thread_in_scope()


def test_a_budget_of_the_gpu_after_one_of_the_host():
    """The host's tensors got memory of the GPU's pool."""
    with coop.budget("64MiB", device="cpu"):
        torch.ones(1000)
    with coop.budget("64MiB", device="cuda:0"):
        assert (torch.ones(100_000) + 1).sum().item() == 200_000


@TWO_GPUS
def test_one_gpus_pool_goes_and_the_others_stays():
    """They have one allocator between them."""
    with coop.budget("64MiB", device="cuda:0"):
        with coop.budget("64MiB", device="cuda:1"):
            y = torch.ones(MIB, device="cuda:1") + 1
            del y
        x = torch.ones(MIB, device="cuda:0") + 1
        assert coop.stats("cuda:0").used_bytes >= 4 * MIB
        assert x.sum().item() == 2 * MIB
