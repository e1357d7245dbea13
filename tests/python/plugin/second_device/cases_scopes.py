"""Budgets of several devices begin and end in any order, and count for themselves."""

import threading

import coop
import pytest
import torch
from coop import _plugin
from two_stages import MIB, SECOND, THIRD, assert_same, stress, train


def test_one_device_has_one_budget():
    with stress(SECOND), stress("cpu"):
        for device in (SECOND, "cpu"):
            with pytest.raises(RuntimeError, match="inside a budget"):
                stress(device).__enter__()
        assert (torch.ones(1000, device=SECOND) + 1).sum().item() == 2000
    assert not torch.ops.coop.has_budget()


@pytest.mark.parametrize("first", ["cpu", SECOND])
def test_one_ends_before_the_other(first):
    """Whichever began first, and what was made in it is there afterwards."""
    other = {"cpu": SECOND, SECOND: "cpu"}[first]
    a, b = stress(first), stress(other)
    a.__enter__()
    b.__enter__()
    x = torch.arange(5000.0, device=other) + 0 if other == "cpu" else None
    if x is None:
        x = torch.arange(5000.0).to(other) + 0
    y = x.to(first) * 2
    z = y + 1
    a.__exit__(None, None, None)
    assert torch.ops.coop.is_thread_in_scope()
    assert not torch.ops.coop.has_budget(torch.device(first))
    assert torch.ops.coop.is_resident(z)
    assert not torch.ops.coop.is_resident(x + 1)
    assert torch.equal(z.cpu(), (x * 2 + 1).cpu())
    y.add_(1)
    # Threads that begin now are inside, too.
    inside = []
    thread = threading.Thread(target=lambda: inside.append(torch.ops.coop.is_thread_in_scope()))
    thread.start()
    thread.join()
    assert inside == [True]
    with stress(first):
        w = x.to(first) + y
        assert torch.equal(w.cpu(), (x.cpu() * 3 + 1))
    b.__exit__(None, None, None)
    assert not torch.ops.coop.is_thread_in_scope()
    outside = []
    thread = threading.Thread(target=lambda: outside.append(torch.ops.coop.is_thread_in_scope()))
    thread.start()
    thread.join()
    assert outside == [False]
    assert torch.equal(w.cpu(), (x.cpu() * 3 + 1))


def test_a_budget_for_each_step():
    devices = ("cpu", SECOND)
    wanted = train(devices)
    scopes = []

    def next_step():
        for it in scopes:
            it.__exit__(None, None, None)
        scopes.reverse()
        for it in scopes:
            it.__enter__()

    def budgets():
        scopes.extend(stress(it) for it in devices)
        for it in scopes:
            it.__enter__()
        return []

    result = train(devices, budgets, each_step=next_step)
    for it in scopes:
        it.__exit__(None, None, None)
    assert_same(result, wanted)


@pytest.mark.parametrize("small", ["cpu", SECOND])
def test_out_of_memory_is_of_one(small):
    sizes = {"cpu": 64 * MIB, SECOND: 64 * MIB} | {small: 8 * MIB}
    other = {"cpu": SECOND, SECOND: "cpu"}[small]
    with (
        _plugin.budget(sizes["cpu"], device="cpu"),
        _plugin.budget(sizes[SECOND], device=SECOND),
    ):
        before = coop.last_oom(other)
        x = torch.ones(MIB, device=other) + 1
        with pytest.raises(coop.OutOfMemory, match=f"8 MiB for {small}"):
            torch.zeros(4 * MIB, device=small)
        facts = coop.last_oom()
        assert (facts.device, facts.budget_bytes) == (small, 8 * MIB)
        assert coop.last_oom(small) == facts
        with pytest.raises(coop.OutOfMemory, match=f"8 MiB for {small}"):
            torch.ones(4 * MIB, device=other).to(small)
        assert coop.last_oom(other) == before
        assert torch.zeros(4 * MIB, device=other).sum().item() == 0
        assert x.sum().item() == 2 * MIB
        assert (torch.zeros(MIB // 2, device=small) + 1).sum().item() == MIB // 2


def test_what_is_read_is_moved_aside_for_what_is_made():
    """What is out of memory depends on how much there is, and not on where it lies."""
    with _plugin.budget(6 * MIB, device=SECOND), _plugin.budget(64 * MIB, device="cpu"):
        two = torch.full((), 2.0)
        before, x, after = (torch.ones(MIB // 2 - 512, device=SECOND) for _ in range(3))
        del before, after  # 2 MiB on either side
        y = x.expand(2, -1) * two
        assert y.cpu().sum().item() == 4 * x.numel()
        assert _plugin.stats(SECOND)["moves"] > 0


def test_stats_are_each_ones_own():
    with stress("cpu"), stress(SECOND, 16 * MIB):
        x = torch.ones(5000, device=SECOND)
        for _ in range(10):
            x = x + 1
        assert coop.stats() == coop.stats(SECOND)
        assert coop.stats(SECOND).budget_bytes == 16 * MIB
        assert coop.stats("cpu").budget_bytes == 32 * MIB
        assert coop.stats(SECOND).recomputations > 5
        assert coop.stats("cpu").recomputations == 0
    assert coop.stats() == coop.stats(SECOND)
    assert coop.stats("cpu").budget_bytes == 32 * MIB
    with pytest.raises(RuntimeError, match="no budget"):
        coop.stats(THIRD)


def test_a_recording_is_of_one(tmp_path):
    with stress("cpu"), stress(SECOND):
        for device in ("cpu", SECOND):
            with coop.record(tmp_path / "one.coop", device=device):
                (torch.ones(5000, device=SECOND) + 1).tanh()
                torch.ones(5000).exp()
            text = (tmp_path / "one.coop").read_text()
            assert ("aten::tanh" in text, "aten::exp" in text) == (
                device == SECOND,
                device == "cpu",
            )


def test_pins_and_addresses():
    with stress("cpu"), stress(SECOND):
        x = coop.pin(torch.ones(5000, device=SECOND) + 1)
        y = torch.ones(5000) + 1
        address = y.numpy()
        x + y.to(SECOND)
        assert torch.ops.coop.is_resident(x)
        assert torch.ops.coop.is_resident(y)
        assert address.sum() == 10000
        assert (x.data_ptr(), (x + 1).sum().item()) == (x.data_ptr(), 15000)


def test_memory_of_a_device_is_of_its_pool():
    before = torch.ops.second.plain_bytes(1)
    with _plugin.budget(16 * MIB, device=THIRD), _plugin.budget(16 * MIB, device=SECOND):
        x = torch.ones(MIB, device=THIRD)
        assert torch.ops.second.plain_bytes(1) == before
        assert coop.stats(THIRD).used_bytes - coop.stats(SECOND).used_bytes == 4 * MIB
        del x
    torch.ops.coop.stats()
    assert torch.ops.second.plain_bytes(1) == before


def test_a_device_without_a_number_is_the_current_one():
    with stress(THIRD), stress(SECOND), stress("cpu"):
        torch.ops.second.set_device(1)
        try:
            x = torch.ones(5000, device="second") * 2
        finally:
            torch.ops.second.set_device(0)
        y = torch.ones(5000, device="second") * 3
        assert (x.device, y.device) == (torch.device(THIRD), torch.device(SECOND))
        z = torch.ones(5000) * 4
        assert not any(torch.ops.coop.is_resident(it) for it in (x, y, z))
        assert [it.sum().item() for it in (x, y, z)] == [10000, 15000, 20000]


def test_one_call_for_several():
    both = coop.budget({"cpu": "32MiB"}, stress=True)
    both._sizes[torch.device(SECOND)] = 16 * MIB  # which is no device for everybody
    with both:
        assert coop.stats("cpu").budget_bytes == 32 * MIB
        assert coop.stats(SECOND).budget_bytes == 16 * MIB
        x = torch.ones(50_000, device=SECOND) * 2
        assert not torch.ops.coop.is_resident(x)
    assert x.sum().item() == 100_000
    assert "second:0" in repr(both)
    with stress(SECOND), pytest.raises(RuntimeError, match="inside a budget"), both:
        pass
    assert not torch.ops.coop.has_budget()


def test_an_operator_of_nobodys_knowledge():
    """Of several devices, with views and lists."""
    with stress("cpu"), stress(SECOND):
        x = torch.arange(5000.0) + 0
        y = (torch.arange(5000.0) + 0).to(SECOND) * 2
        made = mixed(x, [y, y[:10]])
        assert torch.equal(made, torch.arange(5000.0) * 3)
        z = x * 2
        mixed_in_place(x, y)
        assert torch.equal(x, torch.arange(5000.0) * 3)
        assert torch.equal(z, torch.arange(5000.0) * 2)


@torch.library.custom_op("several::mixed", mutates_args=())
def mixed(x: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    return x + others[0].cpu()


@torch.library.custom_op("several::mixed_in_place", mutates_args=("x",))
def mixed_in_place(x: torch.Tensor, other: torch.Tensor) -> None:
    x.add_(other.cpu())
