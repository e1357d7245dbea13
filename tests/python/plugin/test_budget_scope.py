"""What a budget counts, how its scope ends, and that the next one goes on in its pool."""

import dataclasses
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
import numpy as np  # noqa: E402
from coop import _plugin  # noqa: E402
from torch import nn  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
KIB = 1 << 10
MIB = 1 << 20


def is_resident(tensor):
    return torch.ops.coop.is_resident(tensor)


@pytest.fixture(autouse=True)
def nothing_lives_on():
    """What a failed test left behind is not the next one's."""
    yield
    gc.collect()


# --- what counts ---


def test_what_was_there_before_counts_when_it_is_first_seen():
    older = torch.ones(MIB)  # 4 MiB
    with coop.budget("13MiB"):
        assert coop.stats().used_bytes == 0
        made = older + 1  # the number has a place of its own
        assert 8 * MIB <= coop.stats().used_bytes <= 8 * MIB + KIB
        del made
        assert 4 * MIB <= coop.stats().used_bytes <= 4 * MIB + KIB
        with pytest.raises(coop.OutOfMemory):
            torch.zeros(10 * MIB // 4)
        made = torch.zeros(2 * MIB)
    assert coop.stats().peak_bytes <= 13 * MIB
    assert not made.any()


def test_parameters_that_exceed_the_budget_are_out_of_memory():
    layer = nn.Linear(1024, 1024)
    x = torch.ones(4, 1024)
    with coop.budget("2MiB"):
        with pytest.raises(coop.OutOfMemory, match="asked for 4 MiB"):
            layer(x)
        assert (x + 1).sum().item() == 2 * 4 * 1024
    assert coop.last_oom().asked_bytes == layer.weight.nbytes


def test_the_pool_and_what_is_outside_are_together_never_more_than_the_budget():
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.Tanh())])
    batches = [torch.randn(512, 256) for _ in range(4)]
    outside = sum(p.nbytes for p in model.parameters())
    with coop.budget("8MiB"):
        for batch in batches:
            model.zero_grad()
            model(batch).square().sum().backward()
            assert coop.stats().used_bytes >= outside + batch.nbytes
        assert coop.stats().peak_bytes <= 8 * MIB
        assert coop.stats().evictions > 0
        torch.ops.coop.validate()


def test_batches_from_outside_that_have_died_count_no_more():
    with coop.budget("16MiB"):
        for i in range(50):
            batch = torch.from_numpy(np.full(MIB, i))  # 8 MiB
            assert batch.sum().item() == i * MIB


def test_room_for_what_lies_outside_is_not_taken_from_the_system():
    def resident_bytes():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    older = torch.ones(16 * MIB)  # 64 MiB
    before = resident_bytes()
    with coop.budget("128MiB"):
        made = torch.ones(28 * MIB)  # touches most of the pool
        del made
        assert older.sum().item() == 16 * MIB
        assert resident_bytes() < before + 80 * MIB


# --- the end ---


def test_what_lives_on_stays_where_it_is():
    with coop.budget("16MiB"):
        x = torch.arange(64.0 * KIB)
        y = x * 2
    assert torch.ops.coop.pools() == 1
    address = y.data_ptr()
    y.add_(1)  # nobody sees it
    assert torch.equal(y, torch.arange(64.0 * KIB) * 2 + 1)
    with coop.budget("16MiB"):
        assert torch.ops.coop.pools() == 1
        assert x.nbytes + y.nbytes <= coop.stats().used_bytes < x.nbytes + y.nbytes + KIB
        z = y + x
        assert torch.equal(z, torch.arange(64.0 * KIB) * 3 + 1)
        assert torch._C.TensorBase.data_ptr(y) == address
    del x, y
    assert torch.ops.coop.pools() == 1
    del z
    assert torch.ops.coop.pools() == 0


def test_what_the_pool_cannot_hold_goes_out():
    with _plugin.budget(MIB, stress=True, small_limit=0):
        x = torch.arange(64.0 * KIB)  # a quarter of it each
        made = [x * i for i in range(8)]
    for i, tensor in enumerate(made):
        assert torch.equal(tensor, torch.arange(64.0 * KIB) * i)


NO_ROOM_AT_THE_END = """
import resource, sys
import torch, coop
torch.set_num_threads(1)
x = torch.arange(256.0 * 1024)
budget = coop.budget("8MiB")
budget.__enter__()
made = [x * i for i in range(40)]
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
try:
    budget.__exit__(None, None, None)
except coop.OutOfMemory as error:
    assert "not lost" in str(error), error
else:
    sys.exit("there was room")
finally:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert not torch.ops.coop.is_thread_in_scope()
evicted = [i for i, each in enumerate(made) if not torch.ops.coop.is_resident(each)]
assert evicted
try:
    made[evicted[0]].sum()
except RuntimeError as error:
    assert "coop has evicted" in str(error), error
made = {i: made[i] for i in evicted}  # what has come back is not needed any more
with coop.budget("8MiB"):
    assert torch.equal(made[evicted[0]], x * evicted[0])
for i, each in made.items():
    assert torch.equal(each, x * i), i
"""


WITH_AN_ERROR = NO_ROOM_AT_THE_END.replace(
    "    budget.__exit__(None, None, None)\n",
    """\
    error = ValueError("the program's own")
    assert not budget.__exit__(ValueError, error, None)  # it is not hidden by ours
    raise coop.OutOfMemory(getattr(error, "__notes__", ["not lost"])[0])
""",
)


@pytest.mark.parametrize("script", [NO_ROOM_AT_THE_END, WITH_AN_ERROR], ids=["end", "error"])
def test_where_there_is_no_room_at_the_end_nothing_is_lost(script):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "python"), "COOP_PLUGIN": _plugin.library_path()},
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_allocations_pass_through_after_the_scope():
    with coop.budget("8MiB"):
        pass
    x = torch.zeros(8 * MIB)
    assert torch.ops.coop.pools() == 0
    assert x.sum().item() == 0


# --- again ---


def test_a_thousand_steps_with_a_budget_of_their_own():
    def run(decorate):
        torch.manual_seed(7)
        model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64))
        optimizer = torch.optim.Adam(model.parameters())

        @decorate
        def train_step(batch):
            """A step."""
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        assert train_step.__doc__ == "A step."
        losses, pools, held = [], set(), []
        for _ in range(1000):
            losses.append(train_step(torch.randn(32, 64)).item())
            if decorate is not plain:
                pools.add(torch.ops.coop.pools())
                held.append(coop.stats().used_bytes)
        return losses, [p.detach().clone() for p in model.parameters()], pools, held

    def plain(function):
        return function

    losses, parameters, _, _ = run(plain)
    ours, own_parameters, pools, held = run(coop.budget("2MiB"))
    assert losses == ours
    assert all(torch.equal(a, b) for a, b in zip(parameters, own_parameters, strict=True))
    assert pools == {1}  # never another one
    assert held[-1] == held[10]
    gc.collect()
    assert torch.ops.coop.pools() == 0


def test_evictions_go_on_in_a_pool_that_is_used_again():
    torch.manual_seed(7)
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.Tanh())])
    batch = torch.randn(512, 256)

    def step():
        model.zero_grad()
        model(batch).square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    wanted = step()
    for _ in range(5):
        with coop.budget("6400KiB"):
            found = step()
            torch.ops.coop.validate()
        assert coop.stats().evictions > 0  # in this scope
        assert coop.stats().peak_bytes <= 6400 * KIB
        assert all(torch.equal(a, b) for a, b in zip(wanted, found, strict=True))
        del found


def test_an_address_taken_between_two_scopes_stays():
    with coop.budget("4MiB"):
        x = torch.arange(64.0 * KIB)
        y = x * 2
    array = y.numpy()
    del x
    with coop.budget("4MiB"):
        z = y * 2
        base = torch.ones(64 * KIB)
        others = [base * i for i in range(40)]  # more than there is room for
        array[0] = 77
        assert y[0].item() == 77
        assert z[0].item() == 0
        del base, others
    assert y[0].item() == 77


def test_another_budget_counts_what_outlived_the_earlier_when_it_is_first_seen():
    with coop.budget("20MiB"):
        x = torch.ones(2 * MIB) + 1  # 8 MiB
    with coop.budget("12MiB"):
        assert coop.stats().used_bytes == 0
        y = x[: MIB // 2] * 2  # 2 MiB
        assert 10 * MIB <= coop.stats().used_bytes < 11 * MIB
        with pytest.raises(coop.OutOfMemory):
            torch.ones(MIB)
    assert torch.equal(y, torch.full((MIB // 2,), 4.0))
    with coop.budget("4MiB"), pytest.raises(coop.OutOfMemory, match="asked for 8 MiB"):
        _ = x + 1
    del x, y
    assert torch.ops.coop.pools() == 0


def test_a_budget_inside_a_budget_leaves_the_outer_one_as_it_was():
    with coop.budget("8MiB"):
        x = torch.arange(64.0 * KIB) * 2
        with pytest.raises(RuntimeError, match="already, of 8 MiB"), coop.budget("4MiB"):
            pass
        assert coop.stats().budget_bytes == 8 * MIB
        assert torch.ops.coop.is_thread_in_scope()
        assert torch.equal(x / 2, torch.arange(64.0 * KIB))


def test_a_scope_ends_with_an_exception_as_without():
    with pytest.raises(ZeroDivisionError), coop.budget("8MiB", stress=True):
        x = torch.arange(64.0 * KIB) * 2
        _ = 1 / 0
    assert torch.equal(x, torch.arange(64.0 * KIB) * 2)
    assert not torch.ops.coop.is_thread_in_scope()
    assert torch.Tensor.numpy is torch._C.TensorBase.numpy


# --- what it tells ---


def test_stats_inside_and_after():
    x = torch.randn(64, 1024)
    with coop.budget("16MiB", stress=True):
        y = (x @ x.t()).tanh()
        z = y @ x
        inside = coop.stats()
        _ = z.sum().item()
    after = coop.stats()
    assert inside.budget_bytes == 16 * MIB
    assert inside.evictions > 0
    assert inside.recomputations <= after.recomputations
    assert after.recomputations == sum(each.times for each in after.by_op)
    assert "aten::mm" in {each.op for each in after.by_op}
    assert after.recomputing_ns == sum(each.ns for each in after.by_op)
    assert list(after.by_op) == sorted(after.by_op, key=lambda each: -each.ns)
    assert 0 < after.peak_bytes <= after.budget_bytes
    assert after.made_bytes >= y.nbytes + z.nbytes
    assert after.as_dict()["by_op"][0]["op"] == after.by_op[0].op
    with pytest.raises(dataclasses.FrozenInstanceError):
        after.evictions = 0
    shown = str(after)
    for word in ("budget", "16.0 MiB", "evictions", "recomputed, by operator", "aten::mm"):
        assert word in shown


def test_out_of_memory_says_what_would_help():
    assert coop.OutOfMemory is torch.OutOfMemoryError
    older = torch.ones(MIB // 4)
    with coop.budget("4MiB"):
        made = older + 1
        with pytest.raises(coop.OutOfMemory, match=r"help:\n  - coop.budget\(\"10MiB\"\) or"):
            torch.zeros(2 * MIB)
        facts = coop.last_oom()
    assert facts == coop.last_oom()
    assert (facts.asked_bytes, facts.budget_bytes) == (8 * MIB, 4 * MIB)
    assert facts.op.startswith("aten::zeros")
    assert facts.largest_window_bytes < facts.asked_bytes < facts.smallest_budget_bytes <= 10 * MIB
    assert MIB in {each.bytes for each in facts.held}
    assert "aten::zeros" in str(facts)
    del made
    with coop.budget("10MiB"):  # as advised
        made = older + 1
        torch.zeros(2 * MIB)
        assert torch.equal(made, older + 1)


def test_verify_names_the_operator_whose_replay_differs():
    calls = []

    @torch.library.custom_op("coop_scope_test::moody", mutates_args=())
    def moody(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        made = x * 2
        if len(calls) > 1:
            made[12345] += 1  # one element of many
        return made

    coop.register(moody)
    x = torch.zeros(MIB)
    says = "coop_scope_test::moody was run again and made"
    with pytest.raises(RuntimeError, match=says), coop.budget("13MiB", verify=True):
        y = moody(x)
        _ = torch.ones(MIB) + 1
        assert not is_resident(y)
        y.sum()
