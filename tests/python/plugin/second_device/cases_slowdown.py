"""A budget that would halve what is lost is named where the device has so much, and only there."""

import warnings

import coop
import pytest
import torch
from coop import _plugin
from two_stages import MIB, SECOND

WHOLE = 1 << 30


@pytest.fixture
def small_device():
    torch.ops.second.have(6 * MIB)
    yield
    torch.ops.second.have(WHOLE)


def read_backwards():
    """Each of them is made from the one before: what is read last was evicted first."""
    torch.manual_seed(1)
    weight = (torch.randn(256, 256) / 16).to(SECOND)
    values = [torch.randn(512, 256).to(SECOND)]  # half a MiB each
    for _ in range(24):
        values.append(torch.tanh(values[-1] @ weight))
    return [it.sum() for _ in range(6) for it in reversed(values)]


def slow(**options):
    return _plugin.budget(6 * MIB, device=SECOND, pace_window=0.005, **options)


def warning():
    with warnings.catch_warnings(record=True) as told, slow():
        warnings.simplefilter("always")
        read_backwards()
    (it,) = [it.message for it in told if it.category is coop.SlowdownWarning]
    return str(it)


def test_a_warning(small_device):
    text = warning()
    assert "a budget that does is more than the device has, 6 MiB. coop.budget(..., max" in text
    assert "About" not in text


def test_an_error(small_device):
    says = "A smaller batch would help; a budget that does is more than the device has, 6 MiB"
    with slow(max_slowdown=1.5), pytest.raises(coop.OutOfMemory, match=says):
        read_backwards()
    assert coop.last_oom(SECOND).smallest_budget_bytes == 0


def test_where_there_is_more():
    with slow(max_slowdown=1.5), pytest.raises(coop.OutOfMemory, match=r"About .* would halve"):
        read_backwards()
    assert coop.last_oom(SECOND).smallest_budget_bytes > 6 * MIB
