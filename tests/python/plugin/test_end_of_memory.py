"""Budgets that are too small: the program catches the error, makes its batch smaller and goes on.

Whatever is left is what it would be without coop, had the same error been raised at the same
operator. One alone: pytest tests/python/plugin/test_end_of_memory.py -k "goes_on and mlp"
"""

import gc
import os
import re
from contextlib import suppress
from functools import cache

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402
from failing import STEPS, TRAININGS, Watch, are_same, is_same, load, train  # noqa: E402
from programs import differences  # noqa: E402
from torch import nn  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20
BUDGETS = 80 if os.environ.get("COOP_TEST_SCALE") == "full" else 20

every_training = pytest.mark.parametrize("name", TRAININGS)
inside_and_older = pytest.mark.parametrize("is_older", [False, True], ids=["inside", "older"])


@pytest.fixture(autouse=True)
def deterministic():
    load()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    gc.collect()
    assert torch.ops.coop.pools() == 0


def budget(nbytes, **options):
    return _plugin.budget(nbytes, small_limit=4096, **options)


@cache
def peak(name):
    """Bytes that it takes without a limit."""
    ours = train(TRAININGS[name], budget=budget(64 * MIB))
    assert is_same(ours.outcome, train(TRAININGS[name]).outcome)
    return ours.stats["peak_held_bytes"]


def budgets(name, least):
    """From the peak down."""
    return [int(peak(name) * (1 - (1 - least) * i / BUDGETS)) for i in range(1, BUDGETS)]


# --- and goes on ---

# What is carried over steps may be evicted, and then it takes more memory to make it again than the
# budget has; the others keep nothing that could be.
LEAST = {"carried_state": 0.6}
# Where it must have failed at some budget or other. With little taken away it is backward.
PLACES = {"carried_state": {"backward"}, "mlp_adam": {"forward", "backward", "optimizer"}}


@inside_and_older
@every_training
def test_goes_on_as_without_coop(name, is_older):
    build = TRAININGS[name]
    places = set()
    for nbytes in budgets(name, LEAST.get(name, 0.2)):
        ours = train(build, budget=budget(nbytes), is_older=is_older)
        at = [it.operator for it in ours.failures]
        places |= {it.place for it in ours.failures}
        plain = train(build, failing=at)
        assert are_same(ours.operators, plain.operators), nbytes
        assert not differences(plain.outcome, ours.outcome), nbytes
        assert ours.stats["peak_held_bytes"] <= nbytes
        for it in ours.failures:
            assert it.facts.budget_bytes == nbytes
            assert it.facts.asked_bytes > 0
            assert it.text.startswith("coop: out of memory: ")
    assert places >= PLACES.get(name, {"forward", "backward"})


@every_training
def test_a_failed_step_leaves_what_it_leaves_without_coop(name):
    """Some of the gradients, or of the optimizer's state: whoever looks finds the same."""
    build = TRAININGS[name]
    for nbytes in budgets(name, LEAST.get(name, 0.2))[BUDGETS // 4 :: 3]:
        ours = train(build, budget=budget(nbytes), is_older=False, ends_at_failure=True)
        at = [it.operator for it in ours.failures]
        plain = train(build, failing=at, ends_at_failure=True)
        assert are_same(ours.operators, plain.operators), nbytes
        assert is_same(plain.outcome, ours.outcome), nbytes


# --- where it failed, and what would help ---


def test_an_operator_that_has_drawn_before_it_failed():
    """As without coop, where the same request of its kernel fails."""
    x = torch.ones(256 * KIB)  # 1 MiB

    def drop_out(failing=()):
        torch.manual_seed(3)
        torch.ops.foreign.begin_allocations(failing)
        with suppress(torch.OutOfMemoryError):
            torch.native_dropout(x, 0.5, True)
        return torch.ops.foreign.end_allocations(), torch.get_rng_state()

    sizes, after_all = drop_out()
    with budget(2 * MIB + 512 * KIB):
        _, ours = drop_out()
        facts = coop.last_oom()
    assert facts.op == "aten::native_dropout"
    failed = len(sizes) - 1 - sizes[::-1].index(facts.asked_bytes)
    assert failed > 0
    assert torch.equal(ours, drop_out([failed])[1])
    assert not torch.equal(ours, torch.Generator().manual_seed(3).get_state())
    assert torch.equal(ours, after_all)


def test_a_hook_looks_at_something_older_that_does_not_fit():
    """A view reads nothing; but where gradients are accumulated we look at what it is of."""
    older = torch.zeros(4 * MIB)
    weight = torch.ones(1000, requires_grad=True)
    node = weight.expand_as(weight).grad_fn.next_functions[0][0]

    def look(*_):
        older.narrow(0, 0, 10)

    node.register_hook(look)
    with coop.budget("8MiB"), pytest.raises(coop.OutOfMemory, match=r"slice.* asked for 16 MiB"):
        weight.sum().backward()


def test_the_text_has_who_holds_what_the_largest_first_and_one_advice_a_line():
    with coop.budget("8MiB"):
        kept = [torch.zeros(256 * KIB) for _ in range(3)]  # 1 MiB each
        array = (kept[0] + 1).numpy()
        doubled = kept[1] * 2
        with pytest.raises(coop.OutOfMemory) as caught:
            torch.cat([*kept, *kept])
        del array, doubled
    head, _, rest = str(caught.value).partition("\nThe budget of 8 MiB has\n")
    held, _, advice = rest.partition("What would help:\n")
    assert head.splitlines()[0].startswith("coop: out of memory: aten::cat asked for 6 MiB, and")
    lines = held.splitlines()
    assert lines[0].strip() == "3 MiB in 3 blocks that cannot be recomputed"
    assert lines[-1].endswith(" free")
    units = {"B": 1, "KiB": KIB, "MiB": MIB}
    amounts = [float(number) * units[unit] for number, unit, *_ in map(str.split, lines[:-1])]
    assert len(amounts) >= 3
    assert amounts == sorted(amounts, reverse=True)
    assert [it[:4] for it in advice.splitlines()[:-1]] == ["  - "] * 4
    assert "address" in advice


def test_the_named_budget_serves_the_request():
    def fill(nbytes, count):
        """So many tensors of 256 KiB that cannot be recomputed, and then one of 1 MiB."""
        with coop.budget(nbytes):
            kept = [torch.zeros(64 * KIB) for _ in range(count)]
            evictable = kept[0] * 2
            made = torch.zeros(256 * KIB)
            del kept, evictable
            return made.sum().item()

    for count in (1, 3, 5, 9):
        with pytest.raises(coop.OutOfMemory, match="which would serve this request"):
            fill(count * 256 * KIB + MIB // 2, count)
        facts = coop.last_oom()
        assert facts.asked_bytes == MIB
        assert fill(facts.smallest_budget_bytes, count) == 0
        with pytest.raises(coop.OutOfMemory):
            fill(facts.smallest_budget_bytes - 64 * KIB, count)


def refusal_of(nbytes):
    """Of the host's memory, which nobody takes: it is refused."""
    with coop.budget("64MiB", device="cpu"):
        kept = torch.ones(MIB)
        with pytest.raises(coop.OutOfMemory) as caught:
            torch.empty(nbytes, dtype=torch.uint8)
        del kept
    return str(caught.value), coop.last_oom()


def test_what_is_advised_in_short_is_enough_and_little_more():
    whole = coop.budget("100%", device="cpu").bytes
    for nbytes in (100 * MIB, 1020 * MIB, whole // 2, whole // 3):
        text, facts = refusal_of(nbytes)
        advised = re.search(r'budget\("(.*?)"\) or coop run --budget (\S+), which', text)
        assert advised[1] == advised[2]
        enough = facts.smallest_budget_bytes
        most = max(enough + MIB, enough * 1.01)
        assert enough <= coop.budget(advised[1], device="cpu").bytes <= most
    assert refusal_of(1020 * MIB)[0].count('"1GiB"') == 1


def test_no_budget_is_advised_that_there_cannot_be():
    whole = min(coop.budget("100%", device="cpu").bytes, (1 << 40) - 512)
    for nbytes, says in (
        (4 << 40, "not a larger budget: this request alone is more than "),
        (whole, "not a larger budget: with what is held, this request is more than "),
    ):
        text, facts = refusal_of(nbytes)
        assert says in text
        assert "coop run --budget" not in text
        assert "a smaller batch" in text
        assert facts.smallest_budget_bytes == 0


def test_what_rounding_leaves_over_is_not_said_to_be_in_use():
    with coop.budget(1000, device="cpu"), pytest.raises(coop.OutOfMemory) as caught:
        torch.ones(1000)
    assert "The budget of 1000 B has" in str(caught.value)
    assert "in use before" not in str(caught.value)


def first_failure(build, nbytes):
    torch.manual_seed(1)
    training = build()
    with budget(nbytes), Watch() as watch:
        try:
            for _ in range(STEPS):
                training.step(32)
        except torch.OutOfMemoryError:
            facts = coop.last_oom()
            return watch.last(is_between=not facts.op), facts
    return None, None


@pytest.mark.parametrize("name", ["mlp_adam", "convnet_sgd", "accumulation"])
def test_who_follows_the_advice_gets_past_the_operator(name):
    """In a few rounds: an operator may ask for more than once, and choices depend on time."""
    for share in (0.9, 0.7, 0.5, 0.3):
        nbytes = int(share * peak(name))
        failed, facts = first_failure(TRAININGS[name], nbytes)
        now, rounds = failed, 0
        while now is not None and now <= failed and facts.smallest_budget_bytes:
            assert facts.smallest_budget_bytes > nbytes
            nbytes = facts.smallest_budget_bytes
            now, facts = first_failure(TRAININGS[name], nbytes)
            rounds += 1
            assert rounds < 20
        assert nbytes < 2 * peak(name)


def test_whether_it_fits_does_not_depend_on_where_things_lie():
    """What an operator reads lies in the middle of all there is: it is moved aside."""
    with budget(16 * 64 * KIB + 16 * KIB):
        source = torch.ones(16 * KIB)  # 64 KiB
        left = [source * i for i in range(6)]
        x = source * 3
        right = [source * i for i in range(6)]
        assert torch.equal(x, torch.full((16 * KIB,), 3.0))
        big = torch.cat([x] * 13)  # 832 KiB of 1040, beside 128
        assert big.min().item() == big.max().item() == 3
        assert coop.last_oom() is None or coop.last_oom().op != "aten::cat"
        del big
        assert all(torch.equal(it, source * i) for i, it in enumerate(left))
        assert all(torch.equal(it, source * i) for i, it in enumerate(right))
        torch.ops.coop.validate()


def test_what_draws_numbers_gets_a_second_try_as_long_as_it_has_not_drawn():
    def draw():
        source = torch.ones(16 * KIB)  # 64 KiB
        left = [source * i for i in range(6)]
        x = source * 3
        right = [source * i for i in range(6)]
        torch.manual_seed(0)
        drawn = torch.multinomial(x, 11 * 8 * KIB, replacement=True)  # 704 KiB of 1040
        return drawn, torch.rand(3), left, right

    plain, plain_next, *_ = draw()
    with budget(16 * 64 * KIB + 16 * KIB):
        drawn, drawn_next, left, right = draw()
        torch.ops.coop.validate()
        assert coop.last_oom() is None or coop.last_oom().op != "aten::multinomial"
        del left, right
    assert torch.equal(drawn, plain)
    assert torch.equal(drawn_next, plain_next)


STATEFUL = {
    "adam": lambda p: torch.optim.Adam(p, foreach=False),
    "adam_fused": lambda p: torch.optim.Adam(p, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, amsgrad=True, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, centered=True),
}


@inside_and_older
@pytest.mark.parametrize("width", [256, 100], ids=["large", "small"])
@pytest.mark.parametrize("name", STATEFUL)
def test_state_that_grows_out_of_the_budget_is_said_so_by_the_first_that_fails(
    name, width, is_older
):
    """Whatever the layers' size: small tensors have a place of their own, with room between."""
    depth = 240_000 // width**2
    nbytes = depth * (width + 1) * width * 4

    def build():
        model = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])
        return model, STATEFUL[name](model.parameters())

    if is_older:
        model, optimizer = build()
    with coop.budget(int(2.6 * nbytes)):  # parameters, gradients, and a part of what it would be
        if not is_older:
            model, optimizer = build()
        model(torch.randn(8, width)).square().mean().backward()
        with pytest.raises(coop.OutOfMemory, match=r"No eviction can help: parameters .* grad"):
            optimizer.step()
    facts = coop.last_oom()
    assert facts.parameter_bytes == facts.gradient_bytes == nbytes


@inside_and_older
def test_state_that_exceeds_the_budget_alone_is_said_so_at_the_first_step(is_older):
    def build():
        model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])  # 1 MiB
        return model, torch.optim.Adam(model.parameters())

    if is_older:
        model, optimizer = build()
    with coop.budget("3300KiB"):
        if not is_older:
            model, optimizer = build()
        model(torch.randn(16, 256)).square().mean().backward()
        with pytest.raises(coop.OutOfMemory, match="No eviction can help") as caught:
            optimizer.step()
    nbytes = sum(it.nbytes for it in model.parameters())
    facts = coop.last_oom()
    assert facts.parameter_bytes == facts.gradient_bytes == nbytes
    assert facts.lasting_bytes > 2 * nbytes
    assert facts.lasting_bytes + facts.asked_bytes > facts.budget_bytes == 3300 * KIB
    for word in ("parameters (1.0 MiB)", "gradients (1.0 MiB)", "optimizer state"):
        assert word in str(caught.value)
    del caught
    # It says so only then.
    with coop.budget("3200KiB"):
        x = torch.randn(256 * KIB)
        with pytest.raises(coop.OutOfMemory) as caught:
            torch.cat([x * 2, x * 3])
    assert "No eviction can help" not in str(caught.value)
