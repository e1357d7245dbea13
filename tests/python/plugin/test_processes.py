"""Programs of several threads and processes leave what they leave without coop."""

import os
import subprocess
import sys
import threading
from itertools import chain
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

MIB = 1 << 20


def stress(nbytes=64 * MIB):
    return _plugin.budget(nbytes, stress=True, small_limit=0)


class Numbers(Dataset):
    """Made in the worker, by operators and by chance."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        x = torch.full((2000,), float(index)) * 2
        return x + torch.rand(2000), index


def network():
    return nn.Sequential(nn.Linear(2000, 20), nn.Tanh(), nn.Linear(20, 4))


def train_on_loaded(**options):
    torch.manual_seed(3)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(2):
        for x, y in DataLoader(Numbers(), 8, shuffle=True, **options):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x / 50), y % 4)
            loss.backward()
            optimizer.step()
    parameters = list(model.parameters())
    gradients = [it.grad for it in parameters]
    momenta = [optimizer.state[it]["momentum_buffer"] for it in parameters]
    state = torch.get_rng_state()
    return [loss.detach(), *(it.detach() for it in parameters), *gradients, *momenta, state]


def assert_same(a, b):
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.filterwarnings("ignore:.*pin_memory.*")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("how", ["fork", "spawn", "persistent", "pinned", "no workers"])
def test_data_from_workers(how):
    options = {"num_workers": 2, "multiprocessing_context": "spawn" if how == "spawn" else "fork"}
    if how == "persistent":
        options["persistent_workers"] = True
    if how == "no workers":
        options = {}
    if how == "pinned":
        options["pin_memory"] = True
    plain = train_on_loaded(**options)
    with stress():
        stressed = train_on_loaded(**options)
        torch.ops.coop.validate()
        assert _plugin.stats()["replays"] > 0
    assert_same(plain, stressed)


def test_a_child_forked_inside_trains_by_itself():
    """It has its parent's tensors as they were, but for the evicted, and memory of its own."""

    def work(weight):
        x = torch.arange(4000.0).view(40, 100) / 1000
        for _ in range(3):
            weight = (weight * 0.9 + x.t() @ x).tanh()
        return weight

    start = torch.ones(100, 100)
    wanted = work(start)
    with stress():
        kept = start + 0
        evicted = kept * 2
        child = os.fork()
        if child == 0:
            is_same = torch.equal(work(start), wanted)
            try:
                evicted.sum()
            except RuntimeError as error:  # never a wrong number
                is_same = is_same and "coop has evicted" in str(error)
            else:
                is_same = False
            os._exit(0 if is_same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert torch.equal(work(start), wanted)
        assert torch.equal(evicted, start * 2)
        torch.ops.coop.validate()


def test_a_child_forked_inside_saves_what_it_has(tmp_path):
    with coop.budget("16MiB"):
        made = torch.arange(40_000.0) * 2
        child = os.fork()
        if child == 0:
            try:
                torch.save(made, tmp_path / "made.pt")  # which wants it to stay
                coop.pin(made)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert torch.equal(torch.load(tmp_path / "made.pt"), torch.arange(40_000.0) * 2)


def train_two(seeds):
    """Each on a thread of its own, with a generator of its own."""

    def train(seed):
        generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(0)
        weights = [torch.randn(64, 64, generator=generator).requires_grad_() for _ in range(4)]
        optimizer = torch.optim.Adam(weights, lr=1e-2)
        for _ in range(4):
            x = torch.randn(1024, 64, generator=generator)
            for weight in weights:
                x = (x @ weight).tanh()
            optimizer.zero_grad()
            both.wait(60)  # so that what both have made must fit, whoever is faster
            x.square().mean().backward()
            optimizer.step()
        state = [it for weight in weights for it in optimizer.state[weight].values()]
        results[seed] = [it.detach() for weight in weights for it in (weight, weight.grad)] + state

    results = {}
    both = threading.Barrier(len(seeds))
    threads = [threading.Thread(target=train, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [it for seed in seeds for it in results[seed]]


@pytest.mark.parametrize("how", ["stress", "tight"])
def test_two_threads_train(how):
    plain = train_two([1, 2])
    with stress() if how == "stress" else _plugin.budget(3400 << 10, small_limit=4096):
        together = train_two([1, 2])
        torch.ops.coop.validate()
        assert _plugin.stats()["evictions"] > 0
    assert_same(plain, together)


def run_alone(code, *arguments):
    """In a process of its own: its output, if it ends as it should."""
    root = Path(__file__).resolve().parents[3]
    path = os.pathsep.join([str(root / "python"), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("how", ["inside", "outside", "exit", "error"])
def test_the_process_ends_with_evicted_tensors_alive(how):
    code = """
import sys
import torch
from coop import _plugin
how = sys.argv[1]
budget = _plugin.budget(16 << 20, stress=True, small_limit=0)
budget.__enter__()
x = torch.arange(100000.0).requires_grad_()
y = (x * 2).tanh()
array = (x.detach() * 3).numpy()
y.sum().backward()
kept = [y.detach() + i for i in range(5)]
torch.keep_for_ever = kept
if how == "outside":
    budget.__exit__(None, None, None)
print("done", flush=True)
if how == "exit":
    sys.exit()
if how == "error":
    try:
        raise ValueError
    except ValueError:
        pass
"""
    assert run_alone(code, how) == "done\n"


def train_together(folder, how):
    """Two processes, and what each of them has in the end."""
    script = Path(__file__).with_name("ddp.py")
    root = Path(__file__).resolve().parents[3]
    processes = [
        subprocess.Popen(
            [sys.executable, script, str(rank), folder, how],
            env=os.environ | {"PYTHONPATH": str(root / "python")},
        )
        for rank in range(2)
    ]
    try:
        assert [it.wait(120) for it in processes] == [0, 0]
    finally:
        for it in processes:
            it.kill()
    return [torch.load(folder / f"{how}-{rank}.pt") for rank in range(2)]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="without torch.distributed")
def test_two_processes_train_over_gloo(tmp_path):
    plain = train_together(tmp_path, "plain")
    for how in ("stress", "tight"):
        together = train_together(tmp_path, how)
        for mine, wanted in zip(chain(*together), chain(*plain), strict=True):
            assert mine.keys() == wanted.keys()
            assert_same(mine.values(), wanted.values())


COLLECTIVES = """
import sys, torch, coop
from torch import distributed
distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
from torch.distributed import _functional_collectives
run = torch.ops._c10d_functional
with coop.budget("64MiB"):
    for begin in (
        lambda x: run.all_reduce(x, "sum", "0"),
        lambda x: run.all_gather_into_tensor(x, 1, "0"),
        lambda x: run.reduce_scatter_tensor(x, "sum", 1, "0"),
    ):
        result = begin(torch.ones(1 << 20) * 2)
        try:
            torch.zeros(1 << 25)
        except torch.OutOfMemoryError:
            held = {it.what: it.bytes for it in coop.last_oom().held}
        assert held["whose address is known outside"] >= 4 << 20, held
        assert run.wait_tensor(result).sum() == 2 << 20
distributed.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="without torch.distributed")
def test_what_a_collective_writes_later_stays_in_place(tmp_path):
    """These return before they are done, and say nothing of it: nobody may move what they make."""
    run_alone(COLLECTIVES, tmp_path / "meeting")
