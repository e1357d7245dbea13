"""Other threads and processes: they drop, read, run and inherit what is in the pool."""

import contextlib
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20


def stress(nbytes=64 * MIB):
    return _plugin.budget(nbytes, stress=True, small_limit=0)


@pytest.fixture
def short_turns():
    """Threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_others_drop_what_is_being_made_again(short_turns):
    def drop_all(chains):
        while (chain := chains.get()) is not None:
            while chain:
                chain.pop()
                time.sleep(0)

    queues = [Queue(maxsize=3) for _ in range(3)]
    threads = [threading.Thread(target=drop_all, args=(queue,)) for queue in queues]
    for thread in threads:
        thread.start()
    with stress():
        x = torch.randn(500)
        for _ in range(1000):
            chain = [x]
            for _ in range(30):
                chain.append(chain[-1] + 0)
            last = chain.pop() + 0
            for i, queue in enumerate(queues):
                queue.put(chain[1 + i :: 3])
            del chain
            for _ in range(4):
                assert torch.equal(last, x)
        for queue, thread in zip(queues, threads, strict=True):
            queue.put(None)
            thread.join()
        torch.ops.coop.validate()


class WithItsOwnBeginning(threading.Thread):
    def _bootstrap(self):
        super()._bootstrap()


def test_threads_that_begin_in_their_own_way_are_inside(monkeypatch):
    """Debuggers, and what gives threads a name, put something in place of where they begin."""
    inside = []

    def run(kind):
        thread = kind(target=lambda: inside.append(torch.ops.coop.is_thread_in_scope()))
        thread.start()
        thread.join(60)

    with stress():
        run(WithItsOwnBeginning)
        bootstrap = threading.Thread._bootstrap
        monkeypatch.setattr(threading.Thread, "_bootstrap", lambda thread: bootstrap(thread))
        run(threading.Thread)
    run(threading.Thread)
    assert inside == [True, True, False]


@pytest.mark.parametrize("is_older", [True, False])
def test_a_thread_reads_and_writes(is_older):
    x = torch.zeros(5000)
    results = []

    def read_and_write():
        results.append(y + 1)
        x.add_(1)

    with stress():
        if not is_older:
            x = torch.zeros(5000) + 0
        y = x * 2
        thread = threading.Thread(target=read_and_write)
        thread.start()
        thread.join()
        assert not y.any()
        assert x[0].item() == 1
        assert results[0][0].item() == 1
    assert not torch.ops.coop.is_thread_in_scope()


def test_threads_train_side_by_side():
    def train(seed):
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(64, 64, generator=generator).requires_grad_()
        for _ in range(5):
            x = torch.randn(32, 64, generator=generator)
            (x @ weight).tanh().square().mean().backward()
            with torch.no_grad():
                weight -= weight.grad
        return weight.detach()

    wanted = [train(seed) for seed in range(4)]
    with stress(), ThreadPoolExecutor(4) as threads:
        results = list(threads.map(train, range(4)))
        torch.ops.coop.validate()
    assert all(torch.equal(a, b) for a, b in zip(results, wanted, strict=True))


@pytest.mark.parametrize("is_default", [True, False], ids=["default", "its own"])
def test_a_thread_draws_while_others_run_such_operators_again(is_default, short_turns):
    """What it draws, and what is drawn again for others, is the same as if nobody else drew."""

    def batches(put):
        torch.manual_seed(5)
        generator = torch.default_generator if is_default else torch.Generator().manual_seed(7)
        for _ in range(60):
            noise = torch.randn(256, 64, generator=generator)
            put(torch.bernoulli(noise.sigmoid(), generator=generator) * noise)
        return generator

    wanted = []
    wanted_state = batches(wanted.append).get_state()
    with stress(), ThreadPoolExecutor(1) as producer:
        queue = Queue()
        generator = producer.submit(batches, queue.put)
        for batch in wanted:
            made = queue.get(timeout=60)
            assert all(torch.equal(made, batch) for _ in range(4))
        assert torch.equal(generator.result().get_state(), wanted_state)
        assert _plugin.stats()["replays"] > 4 * 60


def test_a_second_try_of_what_draws_does_not_wait_for_replays_that_draw(short_turns):
    """While one makes room for its second try, others draw again what was evicted for it."""
    ended = []
    is_drawn, is_tried = threading.Event(), threading.Event()

    def try_twice():
        is_drawn.wait(60)
        for _ in range(30):
            x = torch.ones(16 << 10)  # 64 KiB
            with contextlib.suppress(torch.OutOfMemoryError):
                torch.multinomial(x * 3, 9 << 13, replacement=True)  # 576 KiB
        is_tried.set()
        ended.append(True)

    def draw_again():
        half = torch.full((16 << 10,), 0.5)
        drawn = [torch.bernoulli(half) for _ in range(8)]
        sums = [it.sum() for it in drawn]
        is_drawn.set()
        is_last = False
        while not is_last:
            is_last = is_tried.is_set()
            with contextlib.suppress(torch.OutOfMemoryError):
                assert all(torch.equal(it.sum(), had) for it, had in zip(drawn, sums, strict=True))
        ended.append(True)

    with _plugin.budget(17 * (64 << 10), small_limit=32 << 10):
        threads = [threading.Thread(target=it, daemon=True) for it in (try_twice, draw_again)]
        for it in threads:
            it.start()
        for it in threads:
            it.join(60)
        assert len(ended) == 2
        assert _plugin.stats()["replays"] > 0


def test_threads_that_draw_from_one_generator():
    """Which gets which numbers is up to them; each can be brought back."""

    def train(_):
        x = torch.ones(64, 32)
        for _ in range(40):
            y = torch.nn.functional.dropout(x, 0.5)
            assert (y.sum() + y.sum()).item() == 2 * y.sum().item()

    with stress(), ThreadPoolExecutor(3) as threads:
        list(threads.map(train, range(3)))
        assert _plugin.stats()["replays"] > 100


def openmp_threads():
    """Of the calling thread. To ask PyTorch is to change it."""
    maps = Path("/proc/self/maps").read_text()
    path = next((word for word in maps.split() if "libgomp" in word), None)
    if path is None:
        pytest.skip("PyTorch is built with another library for threads than GNU's OpenMP")
    return ctypes.CDLL(path).omp_get_max_threads()


def test_a_new_thread_uses_as_many_threads_as_without():
    """Which is OpenMP's number, until PyTorch first has use for the one that the program set."""

    def work():
        x = torch.ones(8, 8) @ torch.ones(8, 8)  # nothing that PyTorch would share out
        return openmp_threads(), x

    def work_on_a_new_thread():
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(work).result()

    usual, _ = work_on_a_new_thread()
    torch.set_num_threads(usual + 1)
    assert work_on_a_new_thread()[0] == usual  # or there is nothing to see
    with stress():
        older = torch.ones(5000).tanh()  # which PyTorch would share out
        count, x = work_on_a_new_thread()
        assert count == usual
        assert (x + 1).sum().item() == 8 * 8 * 9  # run again here, with its own number
        assert openmp_threads() == usual + 1
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(torch.equal, older, torch.ones(5000).tanh()).result()
            assert thread.submit(openmp_threads).result() == usual
            assert thread.submit(torch.get_num_threads).result() == usual + 1
        assert _plugin.stats()["replays"] > 2


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_operators_run_side_by_side():
    @torch.jit.script
    def chain(x, w):
        for _ in range(20):
            x = x * w + 0.5
        return x

    @torch.jit.script
    def three(x, w):
        a = torch.jit.fork(chain, x, w)
        b = torch.jit.fork(chain, x + 1, w)
        c = torch.jit.fork(chain, x + 2, w)
        return torch.jit.wait(a) + torch.jit.wait(b) + torch.jit.wait(c)

    weights = [torch.randn(5000) for _ in range(60)]
    x = torch.randn(5000)
    wanted = [three(x + 1, w) for w in weights]
    with stress():
        older = x + 1
        for w, result in zip(weights, wanted, strict=True):
            assert torch.equal(three(older, w), result)
        torch.ops.coop.validate()


@pytest.mark.parametrize("is_inside_another", [False, True])
def test_a_forked_child_drops_what_outlived_a_budget(is_inside_another):
    with _plugin.budget(16 * MIB):
        x = torch.arange(100000.0)
        array = x.numpy()
        # Memory that nobody knows.
        y = torch._mkldnn_transpose(torch.ones(300, 300).to_mkldnn(), 0, 1)
    second = _plugin.budget(MIB)
    if is_inside_another:
        second.__enter__()
    child = os.fork()
    if child == 0:
        del x, array, y
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    if is_inside_another:
        second.__exit__(None, None, None)


def test_the_pool_goes_with_the_last_that_lives_in_it():
    def resident_bytes():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    before = resident_bytes()
    with _plugin.budget(256 * MIB):
        x = torch.ones(16 * MIB)
        array = x[:1].numpy()
        y = torch.ones(16 * MIB) + 1
    assert y[0].item() == 2
    assert resident_bytes() > before + 128 * MIB
    del x, array, y
    gc.collect()
    assert resident_bytes() < before + 32 * MIB


def run_on(thread_tasks, task):
    """On a thread that is older than the budget."""
    done = threading.Event()
    thread_tasks.put(lambda: (task(), done.set()))
    assert done.wait(60)


@pytest.fixture
def older_thread():
    def work():
        while (task := tasks.get()) is not None:
            task()

    tasks = Queue()
    thread = threading.Thread(target=work)
    thread.start()
    yield tasks
    tasks.put(None)
    thread.join()


LOST = "made something else than it did at first"


@pytest.mark.parametrize("is_older", [True, False])
def test_what_changed_out_of_sight_is_an_error_and_no_number(older_thread, is_older):
    x = torch.zeros(5000)
    with stress():
        if not is_older:
            x = torch.zeros(5000)
        y = x * 2
        run_on(older_thread, lambda: x.add_(1))
        with pytest.raises(RuntimeError, match=LOST):
            y.sum()
        torch.ops.coop.validate()
        assert (x + 1).sum().item() == 2 * 5000
        run_on(older_thread, lambda: x.sub_(1))
        assert not y.any()


def test_what_was_written_out_of_sight_is_kept(older_thread):
    with pytest.warns(coop.UnseenWriteWarning), _plugin.budget(20 * MIB):
        x = torch.zeros(MIB)
        y = x.neg()  # an operator is named once in a process
        z = x * 3
        run_on(older_thread, lambda: y.add_(1))
        with pytest.raises(torch.OutOfMemoryError):
            [torch.ones(MIB) for _ in range(4)]
        assert torch.ops.coop.is_resident(y)
        assert y.sum().item() == MIB
    assert not z.any()
    assert y.sum().item() == MIB


def test_what_was_made_from_it_before_is_not_lost_without_a_word(older_thread):
    with pytest.raises(RuntimeError, match=LOST), _plugin.budget(20 * MIB):
        x = torch.zeros(MIB)
        y = x * 2
        run_on(older_thread, lambda: x.add_(1))
        others = [torch.ones(MIB) for _ in range(3)]
        assert not torch.ops.coop.is_resident(y)
        del others
        with pytest.raises(RuntimeError, match=LOST):
            y.sum()
    assert x.sum().item() == MIB
    with pytest.raises(RuntimeError, match="coop has evicted"):
        y.sum()


SCOPES_THAT_END = """
import threading
import torch
from coop import _plugin

torch.set_num_threads(1)
_plugin.load()
is_over = False

def ask_for_memory():
    torch.ops.coop.enter_thread()
    while not is_over:
        torch.tensor([1.0, 2.0])  # while it has Python

thread = threading.Thread(target=ask_for_memory)
thread.start()
for _ in range(150):
    with _plugin.budget(64 << 20, small_limit=256):
        made = [torch.arange(1000.0) * i for i in range(20)]
        storages = [it.untyped_storage() for it in made]  # Python has these
        del made
    assert all(it.nbytes() == 4000 for it in storages)
is_over = True
thread.join()
"""


def test_a_scope_ends_while_another_thread_waits_with_python_in_its_hands():
    """It hung: to take hold of what Python has, one needs Python."""
    done = subprocess.run(
        [sys.executable, "-c", SCOPES_THAT_END],
        env={"PYTHONPATH": str(ROOT / "python"), "COOP_PLUGIN": _plugin.library_path()},
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
