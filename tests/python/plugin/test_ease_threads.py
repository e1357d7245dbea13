"""At ease or not, and other threads do what they like meanwhile."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20
ops = torch.ops.coop


def test_threads():
    """One of them wants more, over and over, while others run at ease."""

    def work(seed, rest=lambda: None):
        draw = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(100, 100, generator=generator)
        shared = torch.eye(100)
        for _ in range(20):
            y = (x @ shared).mul_(0.5)
            if draw.random() < 0.2:
                extra = [y + i for i in range(draw.randrange(6))]
                y = y + sum(extra) * 0
            rest()
            x = torch.tanh(y) + x.sin_()
        return x

    def rest():
        if random.random() < 0.3:
            ops.begin_ease() if random.random() < 0.5 else ops.end_ease()

    def work_inside(seed):
        ops.enter_thread()
        return work(seed, rest)

    wanted = [work(seed) for seed in range(6)]
    with _plugin.budget(64 * MIB, stress=True, small_limit=1024):
        with ThreadPoolExecutor(3) as threads:
            made = list(threads.map(work_inside, range(6)))
        ops.validate()
        for a, b in zip(made, wanted, strict=True):
            assert torch.equal(a, b)


def test_another_thread_waits_with_python_in_its_hands():
    """Python's last hand on a storage is not needed while others are shut out."""
    _plugin.load()
    ops_done, stop = 0, False
    older = [torch.full((300,), float(i)) for i in range(400)]
    storages = [it.untyped_storage() for it in older]

    def other():
        nonlocal ops_done
        ops.enter_thread()
        while not stop:
            torch.tensor([1.0, 2.0])  # asks for memory while it has Python
            ops_done += 1

    with _plugin.budget(64 * MIB, small_limit=256):
        alone = torch.arange(1000.0).untyped_storage()
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(other)
            while ops_done == 0:
                pass
            for i in range(0, len(older), 10):
                made = [it * 2 for it in older[i : i + 10]]
                older[i : i + 10] = [None] * 10
                ops.begin_ease()
                ops.end_ease()
                del made
            stop = True
            running.result()
        assert alone.nbytes() == 4000
    assert len(storages) == 400


EXCHANGED_AND_DROPPED = """
import threading
import torch
from coop import _plugin

torch.set_num_threads(1)
ops = torch.ops.coop
is_over = False

def exchange_and_drop(size):
    for _ in range(ROUNDS):
        tensors = [torch.ones(300) for _ in range(50)]
        storages = [it.untyped_storage() for it in tensors]
        for it in storages:
            it.resize_(size)
        if size > 0:
            assert all(it.sum().item() == 300 for it in tensors)

def work():
    global is_over
    try:
        exchange_and_drop(0)
        exchange_and_drop(9000)
    finally:
        is_over = True

with _plugin.budget(64 << 20, small_limit=256):
    thread = threading.Thread(target=work)
    thread.start()
    while not is_over:
        ops.begin_ease()
        ops.end_ease()
    thread.join()
    ops.validate()
"""


def test_storages_that_are_about_to_go():
    """Whoever comes to be at ease takes hold of every storage: of those too that another thread is
    dropping, or giving other memory, at this moment. It crashed; hence a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", EXCHANGED_AND_DROPPED.replace("ROUNDS", "1000")],
        env={"PYTHONPATH": str(ROOT / "python"), "COOP_PLUGIN": _plugin.library_path()},
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
