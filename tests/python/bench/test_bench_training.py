"""The networks train, in every way, and what differs from plain PyTorch is told."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from statistics import median

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop.bench import searching  # noqa: E402
from coop.bench.catalog import NETWORKS  # noqa: E402
from coop.bench.comparing import DIFFERENT, EQUAL, PLAIN_DIFFERS, Judge  # noqa: E402
from coop.bench.machine import Machine  # noqa: E402
from coop.bench.measuring import Bench, Steps  # noqa: E402
from coop.bench.networks import Workload  # noqa: E402
from coop.bench.training import Trainer  # noqa: E402
from coop.bench.ways import PLAIN, NotTriedError, Way, counted, inside, peer  # noqa: E402

CPU = Machine("cpu")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_tiny():
    layers = [it for _ in range(6) for it in (torch.nn.Linear(128, 128), torch.nn.Tanh())]
    return torch.nn.Sequential(*layers)


def tiny_trainer(batch=512):
    """Its layers are its linear ones."""

    def numbers(step):
        draw = torch.Generator().manual_seed(step)
        return torch.randn(batch, 128, generator=draw), torch.randn(batch, 128, generator=draw)

    def loss(model, inputs, targets):
        return (model(inputs) - targets).square().mean()

    network = replace(NETWORKS["bilstm"], layers=("Linear",), not_compiled="too small")
    return Trainer(network, Workload(make_tiny, numbers, loss), CPU)


LIKE_ANOTHER = ("resnet50-full", "resnet152")


@pytest.mark.parametrize(
    "name", [it for it in NETWORKS if NETWORKS[it].cpu and it not in LIKE_ANOTHER]
)
def test_two_steps_of_each_in_less_memory_are_the_same(name):
    trainer = Trainer.of(name, CPU)
    layers = peer("checkpoint", trainer.network, CPU)
    checkpointed = trainer.run(counted(layers, "cpu"), 0, 1)
    free = trainer.run(counted(PLAIN, "cpu"), 0, 2)
    assert checkpointed.losses == free.losses[:1]
    assert checkpointed.peak_bytes < free.peak_bytes
    bound = trainer.run(inside(int(0.7 * free.peak_bytes), "cpu"), 0, 2)
    assert (bound.losses, bound.state) == (free.losses, free.state)
    assert bound.after.shown.evictions > 0


def test_a_network_of_full_size_is_what_torchvision_has():
    with torch.device("meta"):
        model = Trainer.of("resnet50-full", CPU).workload.make()
    assert sum(it.numel() for it in model.parameters()) == 25_557_032


def test_figures_are_of_the_steps_that_count():
    bench = Bench(tiny_trainer(), Steps(warm_up=3, timed=4))
    bench.begin()
    found = bench.policy(inside(int(0.7 * bench.peak_bytes), "cpu", "dtr"), 100)
    assert found["losses"] == EQUAL
    assert found["plain_peak_bytes"] == bench.peak_bytes >= found["peak_bytes"]
    assert len(found["times_s"]) == 7
    assert found["evictions"] > 0 and found["recomputations"] > 0 and found["searches"] > 0
    assert 0 < found["fragmentation"] < 1
    ratios = [a / b for a, b in zip(found["times_s"], bench.plain.times, strict=True)][3:]
    pace = found["plain_s"] / median(bench.plain.times[3:])
    assert found["overhead"] == pytest.approx(median(ratios) / pace - 1, abs=1e-3)
    checkpoint = bench.peer(peer("checkpoint", bench.trainer.network, CPU))
    assert checkpoint["losses"] == EQUAL
    assert checkpoint["memory_ratio"] == checkpoint["peak_bytes"] / bench.peak_bytes
    assert bench.trainer.run(counted(PLAIN, "cpu"), 0, 7).state == bench.plain.state
    free = bench.free(inside("50%", "cpu"))
    assert (free["evictions"], free["fragmentation"], free["losses"]) == (0, None, EQUAL)


def test_ways_that_make_no_sense_here_say_so():
    network = tiny_trainer().network
    with pytest.raises(NotTriedError, match="is there already"):
        peer("save_on_cpu", network, CPU)
    with pytest.raises(NotTriedError, match="too small"):
        peer("compile@0.5", network, CPU)


def test_a_budget_for_activations_is_in_force_while_it_is_compiled():
    from torch._functorch import config

    way = peer("compile@0.25", replace(tiny_trainer().network, not_compiled=None), CPU)
    before = config.activation_memory_budget
    with way.scope():
        assert config.activation_memory_budget == 0.25
    assert config.activation_memory_budget == before != 0.25


def one_bit_off(model):
    with torch.no_grad():
        first = next(model.parameters()).view(torch.int32).view(-1)
        first[0] ^= 1 << 12
    return model


def test_one_bit_that_differs_is_found():
    trainer = tiny_trainer()
    judge = Judge(trainer, trainer.run(PLAIN, 0, 3), warm_up=0)
    judge.saw_plain(trainer.run(PLAIN, 0, 2))
    other = Way(prepare=one_bit_off)
    told = judge.compare(trainer.run(other, 0, 3), other)
    assert told == {"losses": DIFFERENT, "losses_as_timed": DIFFERENT}
    assert judge.compare(trainer.run(PLAIN, 0, 3), PLAIN) == {"losses": EQUAL}


def test_a_network_that_does_not_repeat_itself_is_not_held_against_anyone():
    trainer = tiny_trainer()
    loss, drawn = trainer.workload.loss, torch.Generator().manual_seed(1)

    def never_the_same(*all_of_it):
        return loss(*all_of_it) + torch.rand((), generator=drawn)

    trainer = replace(trainer, workload=replace(trainer.workload, loss=never_the_same))
    judge = Judge(trainer, trainer.run(PLAIN, 0, 3), warm_up=0)
    run = trainer.run(PLAIN, 0, 3)
    judge.saw_plain(run)
    assert judge.compare_as_timed(run) == PLAIN_DIFFERS
    told = judge.compare(run, PLAIN)
    assert told == {"losses": PLAIN_DIFFERS, "losses_as_timed": PLAIN_DIFFERS}


def test_the_smallest_ratio_fits_and_a_little_less_does_not():
    bench = Bench(tiny_trainer(), Steps(1, 1))
    bench.begin()
    found = searching.smallest_ratio(bench, "coop", lambda: None)["smallest_ratio"]
    assert 0.1 < found < 1
    least = int(found * bench.peak_bytes)
    # Costs are measured anew each time: what just fits may not, the next time.
    bench.trainer.run(inside(int(1.2 * least), "cpu"), 6, 0)
    with pytest.raises(torch.OutOfMemoryError):
        bench.trainer.run(inside(int(0.8 * least), "cpu"), 6, 0)


@pytest.mark.parametrize("most", [0, 1, 2, 15, 16, 17, 100, 1000])
def test_the_largest_batch_is_found_from_any_usual_one(most):
    for usual in (1, 16, 300):
        tried = []
        found = searching._grow(lambda it, tried=tried: tried.append(it) or it <= most, usual)
        assert found <= most <= found + max(found // 32, 1)
        assert min(tried) > 0 and len(tried) < 20


def test_more_fits_into_a_budget_with_coop(monkeypatch):
    monkeypatch.setattr(
        Trainer, "of", classmethod(lambda cls, name, machine, batch=None: tiny_trainer(batch))
    )
    found = partial(searching.largest_batch, "bilstm", CPU, limit=4 << 20, beat=lambda: None)
    plain, ours = (found(variant)["largest_batch"] for variant in ("plain", "coop"))
    assert 0 < plain < ours


@pytest.mark.parametrize("begin", ["", "begin\n"])
def test_a_process_ends_with_the_one_that_started_it(begin):
    """While it waits, or in the middle."""
    child = subprocess.Popen(
        [sys.executable, "-m", "coop.bench.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
    )
    told = '{"network": "bilstm", "device": "cpu", "kind": "ratio", "ratio": 0.6, "limit": null, '
    told += '"warm_up": 9999, "timed": 9999, "variants": ["coop"]}\n'
    child.communicate(told + begin, timeout=60)
    assert child.returncode == (1 if begin else 0)
