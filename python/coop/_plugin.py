"""The native library: where it is, and whether this PyTorch is one that it can work with."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import torch

_LIBRARY = "libcoop_plugin.so"
_OLDEST, _NEWEST = (2, 11), (2, 15)


@cache
def load() -> None:
    """Load the native library: from beside this file, or from where COOP_PLUGIN says."""
    check_version(torch.__version__)
    path = library_path()
    if not Path(path).exists():
        raise RuntimeError(f"coop: its native library is not at {path}; `make build` makes it")
    torch.ops.load_library(path)


def library_path() -> str:
    return os.environ.get("COOP_PLUGIN", str(Path(__file__).with_name(_LIBRARY)))


def check_version(version: str) -> None:
    major, minor = (int(part) for part in version.split(".")[:2])
    if not _OLDEST <= (major, minor) <= _NEWEST:
        supported = " to ".join(".".join(map(str, each)) for each in (_OLDEST, _NEWEST))
        raise RuntimeError(
            f"coop works with PyTorch {supported}, and this is {version}: it stands where PyTorch "
            f"promises nothing, and starts only where that has been tried"
        )


@cache
def start() -> None:
    """Before the first budget. Throws if not every operator is seen: nothing begins then."""
    from coop._self_test import self_test
    from coop._warnings import enable_warnings

    load()
    torch.ops.coop.prove()
    self_test()
    enable_warnings()


def budget(
    nbytes: int,
    *,
    stress: bool = False,
    verify: bool = False,
    audit: bool = False,
    small_limit: int = 64 << 10,
    policy: str = "coop",
    max_slowdown: float | None = None,
    pace_window: float = 5.0,
) -> AbstractContextManager[object]:
    """For our own tests: a budget in which tensors of more than `small_limit` bytes may go."""
    from coop._budget import budget

    made = budget(
        nbytes,
        stress=stress,
        verify=verify,
        audit=audit,
        policy=policy,
        max_slowdown=max_slowdown,
    )
    made._small_limit = small_limit
    made._pace_window = pace_window
    return made


def stats() -> dict[str, int]:
    """Counters of the budget that is in force, or of the last one."""
    return torch.ops.coop.stats()


def export(tensor: torch.Tensor) -> torch.Tensor:
    """Bring the tensor's memory back, and keep it where it is for as long as it lives."""
    torch.ops.coop.export_tensor(tensor)
    return tensor
