"""Somebody else's C++ (tests/plugin/foreign.cpp): the right data or a clear error."""

import ctypes
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402

MIB = 1 << 20
LIBRARY = Path(os.environ["COOP_PLUGIN"]).parents[1] / "tests/libcoop_foreign.so"
TOTAL = 500 * 999.0


@pytest.fixture(scope="module")
def foreign():
    torch.ops.load_library(LIBRARY)
    return torch.ops.foreign


def stress():
    return _plugin.budget(16 * MIB, stress=True, small_limit=0)


def evicted():
    x = torch.arange(1000.0) + 0
    assert not torch.ops.coop.is_resident(x)
    return x


def test_an_operator_reads(foreign):
    with stress():
        assert foreign.sum(evicted()) == TOTAL
        assert foreign.sum_all([evicted(), evicted()]) == 2 * TOTAL
        x = evicted().requires_grad_()
        assert foreign.sum(x * 2) == 2 * TOTAL


def test_what_an_operator_returns_is_kept(foreign):
    """Nobody said that it may be run again."""
    with stress():
        y = foreign.twice(evicted())
        z = y + 1
        assert torch.ops.coop.is_resident(y)
        assert not torch.ops.coop.is_resident(z)
        assert z.sum().item() == 2 * TOTAL + 1000


def test_an_operator_writes_and_does_not_say_so(foreign):
    with stress():
        x = evicted()
        y = x * 2
        foreign.fill_secretly(x, 7.0)
        assert y.sum().item() == 2 * TOTAL
        assert x.sum().item() == 7000
        view = evicted().view(10, 100)[3]
        foreign.fill_secretly(view, 1.0)
        assert view.sum().item() == 100


@pytest.mark.parametrize(
    "name", ["sum_above", "first_of_storage", "first_of_storage_to_write", "fill_above"]
)
def test_reading_where_nobody_sees_it_is_refused(foreign, name):
    arguments = [1.0] if name == "fill_above" else []
    function = getattr(foreign, name)
    with stress():
        x = evicted()
        with pytest.raises(RuntimeError, match="coop has evicted this tensor's memory"):
            function(x, *arguments)
        y = evicted()
        _plugin.export(y)
        function(y, *arguments)
        assert x.sum().item() == TOTAL  # nothing is lost


def test_a_writer_that_nobody_saw(foreign):
    """What it wrote is not lost when memory gets short, and the program is told."""
    with (
        pytest.warns(coop.UnseenWriteWarning, match=r"that aten::mul\.Tensor made"),
        _plugin.budget(20 * MIB),
    ):
        base = torch.ones(100_000)
        tensors = [base * it for it in range(10)]
        for x in tensors[:3]:
            foreign.fill_above(x, 7.0)
        with pytest.raises(torch.OutOfMemoryError) as error:
            torch.zeros(4_950_000)  # there would be room without any of them
        found = _plugin.stats()["unseen_writes"]
        assert found in (2, 3)  # it looks until there cannot be room
        assert f"{found} blocks whose address is known outside" in str(error.value)
        assert all(torch.ops.coop.is_resident(it) for it in tensors[:3])
        assert [it[0].item() for it in tensors] == [7, 7, 7, 3, 4, 5, 6, 7, 8, 9]


def test_a_tensor_that_cpp_kept(foreign):
    with stress():
        foreign.hold(evicted())
        evicted()
        assert foreign.sum_of_held() == TOTAL  # what it had in its hands is not evicted again


def test_an_address_that_cpp_kept(foreign):
    with stress():
        x = _plugin.export(evicted())
        foreign.keep(x)
        others = [evicted() for _ in range(20)]
        assert foreign.sum_of_kept() == TOTAL
        assert all(it.sum().item() == TOTAL for it in others)
    assert foreign.sum_of_kept() == TOTAL  # for as long as the tensor lives
    del x


def test_an_argument_that_is_not_there(foreign):
    coop.register("foreign::twice_unless")
    with stress():
        x = torch.arange(1000.0) + 0
        y = foreign.twice_without_other(x)
        assert not torch.ops.coop.is_resident(y)
        assert torch.equal(y, 2 * torch.arange(1000.0))


@pytest.mark.parametrize("is_first_try", [True, False])
def test_where_memory_is_refused_no_other_way_is_taken(foreign, is_first_try):
    """cuDNN would take another algorithm, and keep to it: other bits."""
    coop.register("foreign::twice_in_best_way", random=not is_first_try)  # that is tried once
    before = foreign.other_ways_taken()
    with _plugin.budget(16 * MIB, small_limit=0):
        x = torch.arange(1000.0) + 0
        with pytest.raises(torch.OutOfMemoryError, match="twice_in_best_way asked for 32 MiB"):
            foreign.twice_in_best_way(x, 8 * MIB)
        y = foreign.twice_in_best_way(x, MIB)
        assert torch.equal(y, 2 * torch.arange(1000.0))
    assert foreign.other_ways_taken() == before


def test_a_program_that_wants_the_fastest_way_gets_one_that_fits(foreign):
    coop.register("foreign::twice_in_best_way")
    before = foreign.other_ways_taken()
    with (
        torch.backends.cudnn.flags(benchmark=True),
        _plugin.budget(16 * MIB, small_limit=0),
    ):
        x = torch.arange(1000.0) + 0
        y = foreign.twice_in_best_way(x, 3 * MIB)
        assert foreign.other_ways_taken() == before
        assert torch.equal(y, 2 * torch.arange(1000.0))
        y = foreign.twice_in_best_way(x, 8 * MIB)
        assert foreign.other_ways_taken() == before + 1
        assert torch.equal(y, 2 * torch.arange(1000.0) + 1)


def test_what_was_fastest_once_stays_the_way(foreign):
    """What ran in that way may have to be run again."""
    coop.register("foreign::twice_in_best_way")
    before = foreign.other_ways_taken()
    with (
        torch.backends.cudnn.flags(benchmark=True),
        _plugin.budget(16 * MIB, small_limit=0),
    ):
        x = torch.arange(1000.0) + 0
        assert torch.equal(foreign.twice_in_best_way(x, 3 * MIB), 2 * torch.arange(1000.0))
        rest = _plugin.export(torch.ones(2 * MIB))
        with pytest.raises(torch.OutOfMemoryError, match="asked for 12 MiB"):
            foreign.twice_in_best_way(x, 3 * MIB)
        del rest
        assert torch.equal(foreign.twice_in_best_way(x, 3 * MIB), 2 * torch.arange(1000.0))
    assert foreign.other_ways_taken() == before


def test_what_is_evicted_is_not_made_again_in_another_way(foreign):
    coop.register("foreign::twice_in_best_way")
    before = foreign.other_ways_taken()
    with _plugin.budget(8 * MIB, stress=True, small_limit=0):
        x = torch.arange(1000.0) + 0
        y = foreign.twice_in_best_way(x, MIB)
        assert not torch.ops.coop.is_resident(y)
        rest = _plugin.export(torch.ones(3 * MIB // 2))
        with pytest.raises(torch.OutOfMemoryError, match="asked for 4 MiB"):
            y.sum()
        del rest
        assert torch.equal(y, 2 * torch.arange(1000.0))
    assert foreign.other_ways_taken() == before


def test_what_is_about_to_change_outside_is_not_made_again_from():
    """As before a CUDA graph is launched that nobody has seen captured."""
    older = torch.full((5000,), 2.0)
    address = older.data_ptr()
    with stress():
        made = older * 3
        torch.ops.coop.distrust_foreign()
        ctypes.memset(address, 0, older.nbytes)
        later = older + 1
        ctypes.memset(address, 1, older.nbytes)
        assert torch.equal(made, torch.full_like(made, 6.0))
        assert torch.equal(later, torch.ones_like(later))
