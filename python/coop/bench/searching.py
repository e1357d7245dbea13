"""By trial: the smallest budget that fits a network, and the largest batch that fits a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

from coop.bench.catalog import NETWORKS
from coop.bench.machine import Machine
from coop.bench.measuring import Bench
from coop.bench.training import Trainer
from coop.bench.ways import PLAIN, Way, counted, inside

_STEPS = 6  # of a trial: a plan is made in the first, and followed in the last
# A trial may be slow at first, but must not go on for ever.
_SLOW = {"too_slow": 20.0, "pace_window": 0.2}
_FINENESS = 100  # ratios are tried in hundredths
_BATCHES = 32  # and batches to a part in so many


Beat = Callable[[], None]
"""Says before each trial that there is one."""


def smallest_ratio(bench: Bench, policy: str, beat: Beat) -> dict:
    """Between nothing and all of it, by halving."""
    trainer, peak = bench.trainer, bench.peak_bytes

    def fits(hundredth: int) -> bool:
        beat()
        budget = peak * hundredth // _FINENESS
        return _fits(trainer, inside(budget, trainer.machine.device, policy, **_SLOW))

    found = _least(fits, 0, _FINENESS)
    return {"smallest_ratio": found / _FINENESS, "plain_peak_bytes": peak}


def largest_batch(name: str, machine: Machine, variant: str, limit: int, beat: Beat) -> dict:
    """Of plain PyTorch, or with a policy of ours."""

    def fits(batch: int) -> bool:
        beat()
        trainer = Trainer.of(name, machine, batch)
        if variant != "plain":
            return _fits(trainer, inside(limit, machine.device, variant, **_SLOW))
        if machine.has_gpu:
            return _fits(trainer, Way(scope=partial(_limited, limit)))
        found = trainer.run(counted(PLAIN, machine.device), _STEPS, 0)
        return found.peak_bytes <= limit

    usual = NETWORKS[name].size(machine.device).batch
    return {"largest_batch": _grow(fits, usual), "budget_bytes": limit}


def _fits(trainer: Trainer, way: Way) -> bool:
    try:
        trainer.run(way, _STEPS, 0)
        return True
    except torch.OutOfMemoryError:
        return False


def _least(fits: Callable[[int], bool], low: int, high: int) -> int:
    """That fits: `low` does not, `high` does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _grow(fits: Callable[[int], bool], usual: int) -> int:
    """The most that fits; 0: not even one. Twice or half as many until it is between two, and then
    by halving."""
    most, too_many = 0, usual
    if fits(usual):
        most, too_many = usual, 2 * usual
        while fits(too_many):
            most, too_many = too_many, 2 * too_many
    else:
        while most == 0 and too_many > 1:
            half = too_many // 2
            most, too_many = (half, too_many) if fits(half) else (0, half)
    if most == 0:
        return 0
    while too_many - most > max(most // _BATCHES, 1):
        middle = (most + too_many) // 2
        most, too_many = (middle, too_many) if fits(middle) else (most, middle)
    return most


@contextmanager
def _limited(nbytes: int) -> Iterator[None]:
    """Of a GPU PyTorch may have no more."""
    torch.cuda.set_per_process_memory_fraction(nbytes / torch.cuda.mem_get_info()[1])
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
