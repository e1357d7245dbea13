"""Whether a way of training leaves what plain PyTorch leaves, bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from coop.bench.training import Run, Trainer
from coop.bench.ways import PLAIN, Way

EQUAL = "equal"
EQUAL_IF_DETERMINISTIC = "equal with deterministic algorithms"
DIFFERENT = "different"
PLAIN_DIFFERS = "plain does not repeat"

_LATER_STEPS = 5  # that are compared, after those in which a plan is made


@dataclass
class Judge:
    trainer: Trainer
    plain: Run
    warm_up: int
    _repeats: bool = True
    """Plain steps, so far, as they are timed."""
    _deterministic: tuple[Run, bool] | None = field(default=None, init=False)

    def saw_plain(self, run: Run) -> None:
        count = len(run.losses)
        self._repeats = self._repeats and _same(run.losses, self.plain.losses[:count])

    def compare_as_timed(self, run: Run) -> str:
        """Losses alone: a checkpointed batch norm counts twice, which is seen nowhere else."""
        if _same(run.losses, self.plain.losses[: len(run.losses)]):
            return EQUAL
        return DIFFERENT if self._repeats else PLAIN_DIFFERS

    def compare(self, run: Run, way: Way) -> dict:
        """First the steps that were timed. Many kernels do not repeat themselves unless told to:
        where those differ, another few are made under deterministic algorithms."""
        if _same(run.losses, self.plain.losses) and run.state == self.plain.state:
            return {"losses": EQUAL}
        as_timed = DIFFERENT if self._repeats else PLAIN_DIFFERS
        try:
            losses = self._compare_deterministic(way)
        except torch.OutOfMemoryError:
            losses = "not compared: it does not fit with deterministic algorithms"
        return {"losses": losses, "losses_as_timed": as_timed}

    def _compare_deterministic(self, way: Way) -> str:
        steps = self.warm_up + _LATER_STEPS
        with _deterministic():
            if self._deterministic is None:
                one, other = (self.trainer.run(PLAIN, 0, steps) for _ in range(2))
                self._deterministic = one, are_equal(one, other)
            plain, repeats = self._deterministic
            if not repeats:
                return PLAIN_DIFFERS
            found = self.trainer.run(way, 0, steps)
        return EQUAL_IF_DETERMINISTIC if are_equal(plain, found) else DIFFERENT


def are_equal(one: Run, other: Run) -> bool:
    return _same(one.losses, other.losses) and one.state == other.state


def _same(one: list[float], other: list[float]) -> bool:
    """Where a loss is no number, so is the other."""
    return list(map(float.hex, one)) == list(map(float.hex, other))


@contextmanager
def _deterministic() -> Iterator[None]:
    """As far as there are such algorithms."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.use_deterministic_algorithms(False)
