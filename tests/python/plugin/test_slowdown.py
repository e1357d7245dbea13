"""A budget in which recomputing takes longer than the program: it is told, or stopped."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402

MIB = 1 << 20
WINDOW = 0.005  # seconds


def read_backwards(rounds=6, layers=24):
    """Each of them is made from the one before: what is read last was evicted first."""
    torch.manual_seed(1)
    weight = torch.randn(256, 256) / 16
    values = [torch.randn(512, 256)]  # half a MiB each
    for _ in range(layers):
        values.append(torch.tanh(values[-1] @ weight))
    return [it.sum() for _ in range(rounds) for it in reversed(values)]


def test_it_is_told_once_with_a_budget_that_helps():
    wanted = read_backwards()
    with (
        warnings.catch_warnings(record=True) as told,
        _plugin.budget(6 * MIB, pace_window=WINDOW),
    ):
        warnings.simplefilter("always")
        assert torch.equal(torch.stack(wanted), torch.stack(read_backwards()))
        loss = _plugin.stats()["replay_ns"] / _plugin.stats()["base_ns"]
    told = [it.message for it in told if it.category is coop.SlowdownWarning]
    assert len(told) == 1
    said = r"budget of 6\.0 MiB .* ([\d.]+) times slower .* About ([\d.]+) MiB"
    found = re.search(said, str(told[0]))
    assert float(found[1]) > 2
    better = int(float(found[2]) * MIB)
    assert 6 * MIB < better < 64 * MIB
    with _plugin.budget(better):
        read_backwards()
        less = _plugin.stats()["replay_ns"] / _plugin.stats()["base_ns"]
    assert less < loss


def test_it_can_be_an_error_and_the_program_goes_on():
    with _plugin.budget(6 * MIB, max_slowdown=1.5, pace_window=WINDOW):
        kept = torch.arange(100_000.0) * 2
        with pytest.raises(coop.OutOfMemory, match=r"times slower .* max_slowdown=1\.5"):
            read_backwards()
        facts = coop.last_oom()
        assert facts.smallest_budget_bytes > facts.budget_bytes == 6 * MIB
        assert torch.equal(kept, torch.arange(100_000.0) * 2)
        assert torch.equal(kept + 1, torch.arange(100_000.0) * 2 + 1)


def test_nothing_is_said_where_nothing_is_lost():
    with (
        warnings.catch_warnings(),
        _plugin.budget(126 * MIB, max_slowdown=1.01, pace_window=WINDOW),
    ):
        warnings.simplefilter("error")
        read_backwards(rounds=4)


@pytest.mark.parametrize("times", [1, 0, -2, 0.5, float("inf"), float("nan"), True, "2"])
def test_what_is_no_slowdown(times):
    with pytest.raises(ValueError, match="max_slowdown is how many times slower"):
        coop.budget("1GiB", max_slowdown=times)


@pytest.mark.parametrize(("times", "wanted"), [(None, 100), (4, 8), (80, 100)])
def test_one_operator_may_not_go_on_for_much_longer_than_that(tmp_path, times, wanted):
    """It is looked at between operators, and one of them can make very much again: what ends that
    is the engine's patience, which is written down with what is recorded."""
    with coop.budget("64MiB", max_slowdown=times), coop.record(tmp_path / "step.coop"):
        torch.ones(1000) + 1
    lines = (tmp_path / "step.coop").read_text().splitlines()
    told = next(line.split() for line in lines if line.startswith("recorded"))
    assert float(told[3]) == wanted
