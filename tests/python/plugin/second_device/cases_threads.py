"""Several threads and several devices: side by side, across, and while budgets begin and end."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from coop import _plugin
from two_stages import MIB, SECOND, THIRD, stress

ROUNDS = 30


@pytest.fixture(autouse=True)
def short_turns():
    """Threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def chain(device, seed, steps=ROUNDS):
    """Trains a little on one device."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(64, 64, generator=generator).to(device).requires_grad_()
    for _ in range(steps):
        x = torch.randn(32, 64, generator=generator).to(device)
        (x @ weight).tanh().square().mean().backward()
        with torch.no_grad():
            weight -= weight.grad
    return weight.detach().cpu()


def test_a_thread_for_each_device():
    wanted = [chain("cpu", 1), chain(SECOND, 2), chain(THIRD, 3)]
    with stress("cpu"), stress(SECOND), stress(THIRD), ThreadPoolExecutor(3) as threads:
        results = list(threads.map(chain, ("cpu", SECOND, THIRD), (1, 2, 3)))
        torch.ops.coop.validate()
    assert all(torch.equal(a, b) for a, b in zip(results, wanted, strict=True))


def test_budgets_of_two_threads():
    """Each has its own, and begins and ends it while the other is in the middle of something."""
    devices = ("cpu", SECOND)
    wanted = [chain(it, 5, 3) for it in devices]

    def work(device):
        results = []
        for _ in range(25):
            with stress(device):
                results.append(chain(device, 5, 3))
        return results, torch.ops.coop.is_thread_in_scope()

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(work, devices))
    for (results, is_inside), one in zip(outcomes, wanted, strict=True):
        assert not is_inside
        assert all(torch.equal(it, one) for it in results)


def test_all_read_what_all_have_made():
    """Whatever is read has to be made again, on both devices, by threads that hold the other's."""
    failed = []

    def cross(a, b, wanted):
        try:
            for i in range(ROUNDS):
                x, y = (a, b) if i % 2 else (b, a)
                z = (x + 1).to(y.device) + y
                if not torch.equal(z.cpu(), wanted + 1):
                    failed.append(i)
        except Exception as error:
            failed.append(error)

    with stress("cpu"), stress(SECOND):
        a = [torch.arange(5000.0) + 0 for _ in range(3)]
        b = [it.to(SECOND) * 2 for it in a]
        c = [x * 1 for x in a]
        for _ in range(5):
            c = [x + 0 for x in c]
            b = [x + 0 for x in b]
        threads = [
            threading.Thread(target=cross, args=(c[i % 3], b[i % 3], torch.arange(5000.0) * 3))
            for i in range(4)
        ]
        for it in threads:
            it.start()
        for it in threads:
            it.join(240)
            assert not it.is_alive()
        assert not failed
        torch.ops.coop.validate()


def test_one_draws_on_each_device():
    def draw(device):
        x = torch.ones(64, 32, device=device)
        for _ in range(ROUNDS):
            y = torch.nn.functional.dropout(x, 0.5)
            assert (y.sum() + y.sum()).item() == 2 * y.sum().item()

    with stress("cpu"), stress(SECOND), ThreadPoolExecutor(4) as threads:
        list(threads.map(draw, ("cpu", SECOND) * 2))


def test_one_ends_while_others_go_on():
    over = threading.Event()
    failed = []

    def work():
        try:
            x = torch.arange(5000.0) + 0
            while not over.is_set():
                y = x.to(SECOND) * 2
                if not torch.equal((y + 1).cpu(), x * 2 + 1):
                    failed.append("a wrong number")
        except Exception as error:
            failed.append(error)

    with stress("cpu"):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for it in threads:
            it.start()
        for _ in range(20):
            with stress(SECOND):
                kept = [torch.ones(5000, device=SECOND) * i for i in range(5)]
            assert [it[0].item() for it in kept] == [0, 1, 2, 3, 4]
        over.set()
        for it in threads:
            it.join(240)
            assert not it.is_alive()
    assert not failed


def test_little_memory_on_both_sides():
    """Threads hold contents of one while they ask for the other's."""

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(1 << 17, generator=generator)  # 512 KiB
        made = []
        for i in range(12):
            made.append((x * i).to(SECOND).tanh())
            made.append(made[-1].cpu() + x)
        return [it.sum().item() for it in made]

    wanted = [work(seed) for seed in range(3)]
    with (
        _plugin.budget(24 * MIB, device="cpu"),
        _plugin.budget(24 * MIB, device=SECOND),
        ThreadPoolExecutor(3) as threads,
    ):
        assert list(threads.map(work, range(3))) == wanted
