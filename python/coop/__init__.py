"""Coop: a memory budget for PyTorch.

    with coop.budget("8GiB"):
        train()

Inside a budget, tensors that do not fit are evicted and recomputed when they are needed again;
the answer stays the same, bit for bit. Importing this changes nothing, not even PyTorch: that is
left to the first budget.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import OutOfMemoryError as OutOfMemory

    from coop._budget import budget
    from coop._out_of_memory import Holding, OutOfMemoryFacts, last_oom
    from coop._pinning import pin
    from coop._recording import record
    from coop._registering import register
    from coop._report import report
    from coop._stats import Recomputed, Stats, stats
    from coop._warnings import (
        IgnoredBudgetWarning,
        SlowdownWarning,
        UnknownOperatorWarning,
        UnseenWriteWarning,
    )

__version__ = "0.1.0"

__all__ = [
    "Holding",
    "IgnoredBudgetWarning",
    "OutOfMemory",
    "OutOfMemoryFacts",
    "Recomputed",
    "SlowdownWarning",
    "Stats",
    "UnknownOperatorWarning",
    "UnseenWriteWarning",
    "budget",
    "last_oom",
    "pin",
    "record",
    "register",
    "report",
    "stats",
]

_MODULES = {
    "Holding": "coop._out_of_memory",
    "IgnoredBudgetWarning": "coop._warnings",
    "OutOfMemory": "coop._out_of_memory",
    "OutOfMemoryFacts": "coop._out_of_memory",
    "Recomputed": "coop._stats",
    "SlowdownWarning": "coop._warnings",
    "Stats": "coop._stats",
    "UnknownOperatorWarning": "coop._warnings",
    "UnseenWriteWarning": "coop._warnings",
    "budget": "coop._budget",
    "last_oom": "coop._out_of_memory",
    "pin": "coop._pinning",
    "record": "coop._recording",
    "register": "coop._registering",
    "report": "coop._report",
    "stats": "coop._stats",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'coop' has no attribute '{name}'")
    from coop._versions import NO_TORCH, check_version

    try:
        # First: under `coop run` that begins a budget, and none of ours may be half loaded then.
        torch = import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(NO_TORCH, name="torch") from None
    try:
        module = import_module(_MODULES[name])
    except (AttributeError, ImportError):
        check_version(torch.__version__)  # too old, most likely, for what we ask of it
        raise
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
