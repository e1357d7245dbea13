"""What there is to say now and then, most of it by the native library, as Python's warnings."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from pathlib import Path

import torch

from coop._text import as_bytes


class UnknownOperatorWarning(UserWarning):
    """An operator of which nothing is known keeps memory from being saved."""


class UnseenWriteWarning(UserWarning):
    """A tensor was written, and no operator did it."""


class SlowdownWarning(UserWarning):
    """Recomputing takes longer than the program itself."""


class IgnoredBudgetWarning(UserWarning):
    """A budget inside one that `coop run` has put around the program."""


@cache
def enable_warnings() -> torch.library.Library:
    library = torch.library.Library("coop", "IMPL")
    for function in (warn_of_unknown, warn_of_unseen_write, warn_of_slowdown):
        library.impl(function.__name__, function, "CompositeExplicitAutograd")
    return library  # kept for ever: they go with this


def warn_of_unknown(op: str, nbytes: int) -> None:
    warnings.warn(
        f"coop: nothing is known of {op}, so what it makes and reads is never evicted: "
        f"{as_bytes(nbytes)} in its first call. If it may be run again (its results depend on its "
        f'arguments alone, and it writes nothing but what its schema says): coop.register("{op}")',
        UnknownOperatorWarning,
        stacklevel=2,
    )


def warn_of_unseen_write(made_by: str, nbytes: int) -> None:
    warnings.warn(
        f"coop: a tensor of {as_bytes(nbytes)} that {made_by} made was written since, and no "
        f"operator did it: a thread that is older than the budget, or code that kept an address. "
        f"It is kept as it is and never evicted; what was made from it before may be lost. Where "
        f"others write it on purpose: coop.pin(tensor, is_written_elsewhere=True)",
        UnseenWriteWarning,
        stacklevel=2,
    )


def warn_of_slowdown(slowdown: float, nbytes: int, advice: str) -> None:
    warnings.warn(
        f"coop: with a budget of {as_bytes(nbytes)} the program is {slowdown:.1f} times slower "
        f"than without, for what is recomputed. {advice} coop.budget(..., max_slowdown=3) makes an "
        f"error of it",
        SlowdownWarning,
        stacklevel=2,
    )


_has_warned_of_ignored = False


def warn_of_ignored(nbytes: int, outer: int) -> None:
    global _has_warned_of_ignored
    if _has_warned_of_ignored:
        return
    _has_warned_of_ignored = True
    warnings.warn(
        f"coop: the program's own budget of {as_bytes(nbytes)} is ignored: `coop run` has put one "
        f"of {as_bytes(outer)} around all of it",
        IgnoredBudgetWarning,
        stacklevel=_level_of_the_program(),
    )


def _level_of_the_program() -> int:
    """For who calls this: where ours was called, as context manager or decorator."""
    ours = str(Path(__file__).parent)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and Path(frame.f_code.co_filename).is_relative_to(ours):
        frame, level = frame.f_back, level + 1
    return level
