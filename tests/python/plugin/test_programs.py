"""Whole programs inside a budget leave every number as it is without: bit for bit.

One of them alone: pytest tests/python/plugin/test_programs.py -k "stress and resnet"
A few of each kind, those that lean most on PyTorch's insides, are the slice for its other versions.
"""

import os
from functools import cache

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402
from programs import PROGRAMS, Outcome, differences, run  # noqa: E402

MIB = 1 << 20
# cuDNN takes workspaces of tens of MiB for a small recurrent network.
ENOUGH = (64 if os.environ["COOP_DEVICE"] == "cpu" else 256) * MIB
SCALE = os.environ.get("COOP_TEST_SCALE")
SEEDS = (1, 2, 3) if SCALE == "full" else (1,)
SLICE = (
    "resnet",
    "gan_with_gradient_penalty",
    "transformer_with_dropout",
    "nn_lstm_of_packed_sequences",
    "autocast_bfloat16_with_scaler",
    "checkpoint_not_reentrant",
    "subclass_of_operators",
    "dispatch_mode",
    "functional_gradients",
    "parameters_exchanged",
)
# Of the bytes that it takes without a limit.
SHARES = (0.8, 0.6, 0.5, 0.4)

every_program = pytest.mark.parametrize("name", SLICE if SCALE == "slice" else PROGRAMS)
pytestmark = pytest.mark.usefixtures("little_to_compile", "deterministic")
every_seed = pytest.mark.parametrize("seed", SEEDS, ids=[f"seed{it}" for it in SEEDS])


@cache
def plain(name: str, seed: int) -> Outcome:
    try:
        return run(PROGRAMS[name], seed)
    except RuntimeError as error:
        if os.environ["COOP_DEVICE"] == "cpu":
            raise
        pytest.skip(f"plain PyTorch does not run it on a GPU: {str(error).splitlines()[0]}")


@cache
def peak(name: str, seed: int) -> int:
    outcome = run(PROGRAMS[name], seed, _plugin.budget(ENOUGH, small_limit=4096))
    assert not differences(plain(name, seed), outcome)
    return outcome.stats["peak_held_bytes"]


def skip_if_impossible(name):
    if reason := PROGRAMS[name].skip():
        pytest.skip(reason)


@every_seed
@pytest.mark.parametrize("is_older", [False, True], ids=["inside", "older"])
@every_program
def test_stress(name, is_older, seed):
    """Everything is evicted after every operator."""
    skip_if_impossible(name)
    wanted = plain(name, seed)  # first: a program that fails by itself says so
    budget = _plugin.budget(ENOUGH, stress=True, small_limit=0)
    stressed = run(PROGRAMS[name], seed, budget, is_older=is_older)
    assert not differences(wanted, stressed)
    assert stressed.stats["replays"] > 0
    assert stressed.stats["unseen_writes"] == 0


@every_seed
@every_program
def test_audit(name, seed):
    """Every operator is run again at once, from its record; the end of the scope would object."""
    skip_if_impossible(name)
    wanted = plain(name, seed)
    audited = run(PROGRAMS[name], seed, _plugin.budget(256 * MIB, audit=True, small_limit=0))
    assert not differences(wanted, audited)
    assert audited.stats["evictions"] == 0


@cache
def within(name: str, seed: int, nbytes: int) -> Outcome | None:
    """Nothing if it is out of memory."""
    try:
        return run(PROGRAMS[name], seed, _plugin.budget(nbytes, small_limit=4096))
    except torch.OutOfMemoryError:
        too_little[name, seed] = max(nbytes, too_little.get((name, seed), 0))
        return None


too_little: dict[tuple[str, int], int] = {}


def smallest_that_fits(name: str, seed: int, share: float) -> tuple[int, Outcome]:
    """From this share of the peak on, in steps of a tenth of it."""
    most = PROGRAMS[name].least_share
    for tenth in range(10):
        share_now = min(share + 0.1 * tenth, most)
        nbytes = int(share_now * peak(name, seed))
        if nbytes <= too_little.get((name, seed), 0) and share_now < most:
            continue
        if (outcome := within(name, seed, nbytes)) is not None:
            return nbytes, outcome
        if share_now == most:
            break
    raise AssertionError(f"out of memory with {most:.0%} of the peak")


@every_seed
@pytest.mark.parametrize("share", SHARES, ids=[f"{it:.0%}" for it in SHARES])
@every_program
def test_budget(name, share, seed):
    """This share of what it takes without a limit; or the smallest budget above it that fits."""
    skip_if_impossible(name)
    nbytes, outcome = smallest_that_fits(name, seed, share)
    assert not differences(plain(name, seed), outcome)
    assert outcome.stats["peak_held_bytes"] <= nbytes
    if share == min(SHARES):
        assert outcome.stats["evictions"] > 0
        assert outcome.stats["replays"] > 0
