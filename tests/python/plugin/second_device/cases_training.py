"""Training over several devices leaves every number as it is without budgets."""

import itertools

import coop
import pytest
import torch
from coop import _plugin
from two_stages import MIB, SECOND, THIRD, assert_same, stress, train

ORDERS = list(itertools.permutations(("cpu", SECOND)))


def evictions(device):
    return coop.stats(device).evictions


def test_the_second_device_is_one():
    x = torch.randn(100, 100)
    y = x.to(SECOND)
    assert y.device.type == "second"
    assert torch.equal((y @ y.t()).cpu(), x @ x.t())
    assert torch.equal(y.add_(1).cpu(), x + 1)
    assert torch.ops.second.plain_bytes(0) >= y.nbytes


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("is_older", [True, False])
def test_two_stages_in_stress(order, is_older):
    devices = ("cpu", SECOND)
    wanted = train(devices, model_is_older=is_older)
    assert_same(wanted, train(devices, model_is_older=is_older))  # it repeats itself
    result = train(devices, lambda: [stress(it) for it in order], model_is_older=is_older)
    assert_same(result, wanted)
    for it in devices:
        assert evictions(it) > 100
        assert coop.stats(it).recomputations > 100


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("is_older", [True, False])
def test_two_stages_in_little_memory(order, is_older):
    devices = ("cpu", SECOND)
    wanted = train(devices, model_is_older=is_older, rows=2048)
    peaks = {}

    def budgets(share):
        return [_plugin.budget(int(peaks.get(it, 256 * MIB) * share), device=it) for it in order]

    result = train(devices, lambda: budgets(1), model_is_older=is_older, rows=2048)
    assert_same(result, wanted)
    assert all(evictions(it) == 0 for it in devices)
    peaks = {it: coop.stats(it).peak_bytes for it in devices}
    result = train(devices, lambda: budgets(0.7), model_is_older=is_older, rows=2048)
    assert_same(result, wanted)
    for it in devices:
        assert evictions(it) > 0
        assert coop.stats(it).peak_bytes <= 0.7 * peaks[it]


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_three_stages(optimizer):
    devices = (SECOND, "cpu", THIRD)
    wanted = train(devices, optimizer=optimizer)
    result = train(devices, lambda: [stress(it) for it in devices], optimizer=optimizer)
    assert_same(result, wanted)
    assert all(evictions(it) > 50 for it in devices)


def test_two_of_a_kind():
    """As two GPUs, with the host not in it."""
    devices = (SECOND, THIRD)
    wanted = train(devices)
    assert_same(train(devices, lambda: [stress(it) for it in devices]), wanted)
    assert all(evictions(it) > 100 for it in devices)


@pytest.mark.parametrize("stressed", ["cpu", SECOND])
def test_one_of_them_is_stressed(stressed):
    devices = ("cpu", SECOND)
    wanted = train(devices)

    def budgets():
        return [
            stress(it) if it == stressed else _plugin.budget(256 * MIB, device=it) for it in devices
        ]

    assert_same(train(devices, budgets), wanted)
    assert {it for it in devices if evictions(it) > 0} == {stressed}


def test_at_ease_and_not():
    """It comes and goes, and everything is evicted in between."""
    devices = ("cpu", SECOND)
    wanted = train(devices, steps=12)
    eased = []

    def turn():
        if len(eased) % 2 == 0:
            eased.append(torch.ops.coop.begin_ease())
        else:
            torch.ops.coop.end_ease()
            eased.append(False)

    def budgets():
        return [_plugin.budget(256 * MIB, device=it, small_limit=256) for it in devices]

    assert_same(train(devices, budgets, steps=12, each_step=turn), wanted)
    assert any(eased)
    for it in devices:
        assert _plugin.stats(it)["light_operators"] > 100


def test_at_ease_by_itself():
    devices = ("cpu", SECOND)
    wanted = train(devices, steps=40, rows=64)

    def budgets():
        return [_plugin.budget(256 * MIB, device=it) for it in devices]

    at_ease = {it: 0 for it in devices}

    def look():
        for it in devices:
            at_ease[it] += _plugin.stats(it)["at_ease"]

    assert_same(train(devices, budgets, steps=40, rows=64, each_step=look), wanted)
    assert all(at_ease.values())
