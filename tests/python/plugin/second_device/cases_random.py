"""Random programs over three devices leave what they leave without budgets, bit for bit."""

import random
from contextlib import ExitStack

import pytest
import torch
from coop import _plugin
from two_stages import MIB, SECOND, THIRD, stress

DEVICES = ("cpu", SECOND, THIRD)
LENGTH = 3000


def program(seed, steps, between=lambda step: None, derived=3):
    """Makes, changes, copies to and fro, and drops; everything that is left, and the generators."""
    choice = random.Random(seed)
    torch.manual_seed(seed)
    torch.ops.second.manual_seed(seed)
    own = {it: [torch.linspace(-1, 1, LENGTH).to(it)] for it in DEVICES}

    def pick(device=None):
        return choice.choice(own[device or choice.choice(DEVICES)])

    def make(tensor):
        own[str(tensor.device)].append(tensor)

    def elementwise():
        make(choice.choice((torch.tanh, torch.sin, torch.neg, torch.cos))(pick()))

    def of_two():
        a = pick()
        make(a * 0.5 + pick(str(a.device)) * 0.25)

    def copied():
        make(pick().to(choice.choice(DEVICES)))

    def copied_and_used():
        a = pick()
        make(pick().to(a.device) - a)

    def with_a_number_of_the_hosts():
        number = pick("cpu")[choice.randrange(LENGTH)].clone()
        make(pick() * number)
        if choice.random() < 0.5:
            number.fill_(9)

    def overwritten():
        pick().copy_(pick())

    def part_overwritten():
        begin = choice.randrange(100, LENGTH // 2)
        pick()[begin : begin + 100].copy_(pick()[:100])

    def changed():
        a = pick()
        a.mul_(0.5).add_(pick().to(a.device), alpha=0.25)

    def changed_by_a_number():
        pick().mul_(pick("cpu")[0].clone())

    def drawn():
        a = pick()
        make(torch.bernoulli(a.sigmoid()) if choice.random() < 0.5 else torch.rand_like(a))

    def made_elsewhere():
        make(torch.full_like(pick(), 0.5, device=choice.choice(DEVICES)))

    def dropped():
        tensors = own[choice.choice(DEVICES)]
        if len(tensors) > 3:
            tensors.pop(choice.randrange(len(tensors)))

    def read():
        read_values.append(pick().sum().item())

    read_values = []
    deeds = [elementwise, of_two] * derived + [dropped] * (derived + 1)
    deeds += [copied, copied_and_used, with_a_number_of_the_hosts, overwritten, part_overwritten]
    deeds += [changed, changed_by_a_number, drawn, made_elsewhere, read]
    for step in range(steps):
        choice.choice(deeds)()
        between(step)
    states = [torch.get_rng_state().tolist(), *map(torch.ops.second.random_state, (0, 1))]
    return [it for all_of_one in own.values() for it in all_of_one], read_values, states


def assert_leaves_the_same(seed, steps, budgets, between=lambda step: None, derived=3):
    tensors, values, states = program(seed, steps, derived=derived)
    wanted = [it.cpu() for it in tensors]
    del tensors
    with ExitStack() as stack:
        for it in budgets:
            stack.enter_context(it)
        inside, values_inside, states_inside = program(seed, steps, between, derived)
        torch.ops.coop.validate()
        in_the_middle = [it.cpu() for it in inside]
        differing = [
            i for i, (a, b) in enumerate(zip(in_the_middle, wanted, strict=True)) if not same(a, b)
        ]
        assert not differing
    assert all(same(a.cpu(), b) for a, b in zip(inside, wanted, strict=True))
    assert repr(values_inside) == repr(values)
    assert states_inside == states


def same(a, b):
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


@pytest.mark.parametrize("seed", range(20))
def test_in_stress(seed):
    order = random.Random(seed).sample(DEVICES, 3)
    assert_leaves_the_same(seed, 400, [stress(it) for it in order])


@pytest.mark.parametrize("seed", range(20, 26))
def test_in_little_memory(seed):
    """As little as it takes; what cannot be recomputed has to fit."""
    budgets = [_plugin.budget(16 * MIB, device=it, small_limit=256) for it in DEVICES]
    assert_leaves_the_same(seed, 400, budgets, derived=15)
    peaks = {it: _plugin.stats(it)["peak_held_bytes"] for it in DEVICES}
    for share in (0.6, 0.8, 0.9):
        budgets = [
            _plugin.budget(int(peaks[it] * share), device=it, small_limit=256) for it in DEVICES
        ]
        try:
            assert_leaves_the_same(seed, 400, budgets, derived=15)
        except torch.OutOfMemoryError:
            continue
        assert all(_plugin.stats(it)["evictions"] for it in DEVICES)
        return
    pytest.fail("not even nine tenths are enough")


@pytest.mark.parametrize("seed", range(40, 60))
def test_at_ease_now_and_then(seed):
    """Ease begins and ends; some are stressed in between, and some never."""

    def turn(step):
        if step % 40 == 10:
            torch.ops.coop.begin_ease()
        elif step % 40 == 30:
            torch.ops.coop.end_ease()

    budgets = [
        _plugin.budget(64 * MIB, device=it, small_limit=0 if i == seed % 3 else 256)
        for i, it in enumerate(DEVICES)
    ]
    assert_leaves_the_same(seed, 400, budgets, turn)
