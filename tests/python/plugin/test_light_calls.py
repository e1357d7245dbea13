"""Operators on small tensors, of which the engine hears only when something large hangs on them."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402

MIB = 1 << 20


def light_operators(function):
    before = _plugin.stats()["light_operators"]
    function()
    return _plugin.stats()["light_operators"] - before


def evict(*tensors):
    """With stress, what may go goes after every operator."""
    torch.zeros(1).sum()
    return [torch.ops.coop.is_resident(it) for it in tensors]


def stress():
    return _plugin.budget(16 * MIB, stress=True)


def test_small_operators_are_light_and_right():
    a = torch.arange(16.0)
    with _plugin.budget(16 * MIB):
        b = torch.ones(16)
        made = []
        assert light_operators(lambda: made.append((a + b).mul_(2).relu())) == 3
        assert _plugin.stats()["storages"] == 0
        torch.ops.coop.validate()
    assert torch.equal(made[0], (torch.arange(16.0) + 1) * 2)


def test_what_is_large_and_made_from_small_things_is_made_again():
    with stress():
        x = torch.arange(200.0)
        y = torch.outer(x, x)
        assert evict(y) == [False]
        assert torch.equal(y, torch.arange(200.0) * torch.arange(200.0)[:, None])
        assert _plugin.stats()["replays"] > 0
        torch.ops.coop.validate()


@pytest.mark.parametrize("is_older", [True, False])
@pytest.mark.parametrize("is_light_at_first", [True, False])
def test_what_was_made_is_protected_before_a_small_thing_is_written(is_older, is_light_at_first):
    older = torch.arange(200.0)
    with stress():
        x = older if is_older else torch.arange(200.0)
        if is_light_at_first:
            x.mul_(1)
        y = torch.outer(x, x)
        assert evict(y) == [False]
        x.add_(1)
        torch._foreach_mul_([x], 2)
        z = torch.outer(x, x)
        x.zero_()
        plain = torch.arange(200.0)
        assert torch.equal(y, plain * plain[:, None])
        plain = (plain + 1) * 2
        assert torch.equal(z, plain * plain[:, None])


def test_a_small_thing_that_an_operator_changes_while_it_makes_a_large_one():
    def run():
        mean, variance = torch.zeros(4), torch.ones(4)
        x = torch.arange(8.0).view(2, 4)
        wide = x.expand(10_000, 2, 4).reshape(-1, 4)
        y = torch.nn.functional.batch_norm(wide, mean, variance, training=True)
        return y * 1, mean, variance

    wanted = run()
    with stress():
        made = run()
        for a, b in zip(made, wanted, strict=True):
            assert torch.equal(a, b)


def test_random_numbers_for_something_small_are_drawn_once():
    def run():
        torch.manual_seed(3)
        noise = torch.empty(100).normal_()
        wide = torch.nn.functional.dropout(noise, 0.5).expand(500, 100).clone()
        return wide + 0, noise, torch.rand(3)

    wanted = run()
    with stress():
        for a, b in zip(run(), wanted, strict=True):
            assert torch.equal(a, b)


def test_an_operator_that_fails_leaves_everything_as_it_was():
    with stress():
        x = torch.arange(16.0)
        with pytest.raises(RuntimeError):
            x + torch.ones(17)
        with pytest.raises(torch.OutOfMemoryError):
            x.expand(10 * MIB, 16).clone()
        assert torch.equal(x + 0, torch.arange(16.0))
        torch.ops.coop.validate()


def test_a_numpy_array_of_something_small_is_no_past_to_rely_on():
    with stress():
        x = torch.arange(200.0)
        array = x.numpy()
        y = torch.outer(x, x)
        array[:] = 0
        assert torch.equal(y, torch.arange(200.0) * torch.arange(200.0)[:, None])


def test_what_is_small_and_outlives_a_budget_is_good_for_the_next():
    with _plugin.budget(16 * MIB):
        x = torch.arange(200.0)
        z = torch.arange(200.0)
    array = z.numpy()
    with stress():
        y = torch.outer(x, x)
        w = torch.outer(z, z)
        array[:] = 0
        assert evict(y, w) == [False, True]
        wanted = torch.arange(200.0) * torch.arange(200.0)[:, None]
        assert torch.equal(y, wanted)
        assert torch.equal(w, wanted)


def test_once_the_budget_binds_nothing_is_light():
    with _plugin.budget(4 * MIB):
        x = torch.arange(100_000.0)
        kept = [x * i for i in range(20)]
        assert _plugin.stats()["searches"] > 0
        small = torch.ones(4)
        assert light_operators(lambda: small + small) == 0
        for i, it in enumerate(kept):
            assert torch.equal(it, x * i)


def test_threads_share_small_things():
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        mine = torch.full((50,), float(seed))
        for _ in range(50):
            wide = torch.outer(mine + shared, shared)  # all of them read, and make it known
            mine = (wide.sum(1) / shared.sum()).clone()
            mine.sub_(shared)
        return mine

    shared = torch.arange(400.0)
    shared = (shared[:50] + 1).clone()
    wanted = [work(seed) for seed in range(4)]
    with stress(), ThreadPoolExecutor(4) as threads:
        shared = shared + 0
        results = list(threads.map(work, range(4)))
        torch.ops.coop.validate()
    assert all(torch.equal(a, b) for a, b in zip(results, wanted, strict=True))
