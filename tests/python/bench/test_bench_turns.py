"""Processes that take turns step by step: what they train, and how they end."""

import os
import signal
import subprocess
import sys
from statistics import median

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop.bench.comparing import EQUAL, are_equal  # noqa: E402
from coop.bench.machine import Machine  # noqa: E402
from coop.bench.measuring import BenchInTurns, Steps  # noqa: E402
from coop.bench.outcome import LostError, try_to  # noqa: E402
from coop.bench.training import Trainer  # noqa: E402
from coop.bench.turns import Partner, take_turns  # noqa: E402
from coop.bench.ways import PLAIN, NotTriedError, counted, inside, peer, way_of  # noqa: E402
from processes import below, is_running, wait_until  # noqa: E402

CPU = Machine("cpu")
STEPS = 2, 2  # of warm-up, and that count


@pytest.fixture(scope="module")
def held():
    """What it takes here, in one thread as there."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield Trainer.of("bilstm", CPU).run(counted(PLAIN, "cpu"), *STEPS)
    torch.set_num_threads(before)


def start(way=PLAIN, **more):
    return Partner("bilstm", way, *STEPS, **more)


def test_they_leave_what_one_process_leaves(held):
    tight = inside(int(0.7 * held.peak_bytes), "cpu")
    with start() as plain, start(tight) as ours:
        take_turns(plain, [ours])
        plain, ours = plain.run(), ours.run()
    assert are_equal(plain, held) and are_equal(ours, held)
    assert len(plain.times) == len(ours.times) == 4 and ours.warm_up == 2
    assert (plain.peak_bytes, plain.before, plain.after) == (None, None, None)
    assert 0 < ours.peak_bytes <= 0.7 * held.peak_bytes
    assert 0 < ours.before.shown.evictions < ours.after.shown.evictions
    assert ours.after.shown.by_op[0].op
    assert ours.before.inner["replays"] < ours.after.inner["replays"]


def test_what_does_not_fit_says_so_and_nobody_goes_on_alone():
    with start() as plain, start(inside(1 << 20, "cpu")) as ours:
        take_turns(plain, [ours])
        assert ours.lost.outcome["status"] == "does not fit"
        assert ours.lost.outcome["why"].startswith("OutOfMemoryError: ")
        assert not plain.is_over
        with pytest.raises(LostError, match="does not fit"):
            ours.run()


def test_one_that_dies_says_how_and_the_others_go_on():
    with start() as plain, start() as dying, start() as other:
        os.kill(dying._process.pid, signal.SIGKILL)
        take_turns(plain, [dying, other])
        assert dying.lost.outcome == {"status": "crashed", "why": "signal 9, SIGKILL"}
        assert are_equal(plain.run(), other.run())


def saying(code):
    return {"command": [sys.executable, "-S", "-c", code]}


def test_nothing_is_compared_with_a_plain_one_that_is_lost():
    went_wrong = saying("import sys; sys.exit('it went wrong')")
    with start(**went_wrong) as plain, start(**saying("")) as mute:
        take_turns(plain, [mute])
        assert str(plain.lost) == "crashed: exit code 1: it went wrong"
        assert str(mute.lost) == "crashed: it ended without a word"


def test_what_fails_says_why():
    with Partner("no such", PLAIN, *STEPS) as failing:
        failing.wait()
    assert failing.lost.outcome == {"status": "failed", "why": "KeyError: 'no such'"}


def outcome(error):
    def measure():
        raise error

    return try_to(measure)["status"]


def test_every_end_has_its_name():
    assert try_to(lambda: {"overhead": 0.1}) == {"status": "ok", "overhead": 0.1}
    assert outcome(torch.OutOfMemoryError("5.1 times slower")) == "too slow"
    assert outcome(torch.OutOfMemoryError("no room")) == "does not fit"
    assert outcome(NotTriedError("no")) == "not tried"
    assert outcome(ValueError("no")) == "failed"
    assert outcome(LostError({"status": "crashed", "why": "no"})) == "crashed"


def test_ways_are_the_same_in_another_process():
    network = Trainer.of("spos", CPU).network
    layers = peer("checkpoint", network, CPU)
    for way in (PLAIN, layers, counted(layers, "cpu"), inside(100, "cpu", "dte", too_slow=3.0)):
        again = way_of(way.told, network, CPU)
        assert (again.told, again.is_counted) == (way.told, way.is_counted)
        assert (again.prepare is PLAIN.prepare) == (way.prepare is PLAIN.prepare)


# In a step that does not end.
STUCK = """
import time
from coop.bench import partner
def stuck(turn, **told):
    turn()
    time.sleep(1000)
partner._train = stuck
partner.main()
"""

PARENT = f"""
from coop.bench.turns import Partner
from coop.bench.ways import PLAIN
import sys
stuck = Partner("bilstm", PLAIN, 2, 2, command=[sys.executable, "-c", {STUCK!r}])
stuck.wait()
stuck.tell("")
print("stuck", flush=True)
stuck.wait()
"""


def test_one_ends_with_its_parent_in_the_middle_of_a_step():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "stuck\n"
    (stuck,) = below(parent.pid)
    assert is_running(stuck) and os.getpgid(stuck) == os.getpgid(parent.pid)
    parent.kill()
    parent.communicate()
    wait_until(lambda: not is_running(stuck))


def test_figures_are_of_pairs_of_steps():
    beats = []
    steps = Steps(warm_up=3, timed=4)
    bench = BenchInTurns(Trainer.of("bilstm", CPU), steps, "bilstm", lambda: beats.append(1))
    bench.begin()
    found = bench.policy(inside(int(0.7 * bench.peak_bytes), "cpu", "dtr"), 100)
    assert len(beats) == 2 * 7
    assert found["losses"] == EQUAL
    assert found["plain_peak_bytes"] == bench.peak_bytes >= found["peak_bytes"]
    assert found["evictions"] > 0 and found["searches"] > 0
    assert found["recomputed"] == found["recomputed_of_operators"] > 0
    both = zip(found["times_s"], found["plain_times_s"], strict=True)
    over = [ours / plain - 1 for ours, plain in both]
    assert found["overhead"] == pytest.approx(median(over[3:]), abs=1e-3)
    early = {"1": over[0], "5": over[4]}
    assert found["early_overheads"] == pytest.approx(early, abs=1e-3)
    checkpoint = bench.peer(peer("checkpoint", bench.trainer.network, CPU))
    assert checkpoint["losses"] == EQUAL
    assert checkpoint["memory_ratio"] == checkpoint["peak_bytes"] / bench.peak_bytes < 1
