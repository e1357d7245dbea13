"""The native library: where it is, and whether this PyTorch is one that it can work with."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import torch

from coop._log import log
from coop._native import library_path
from coop._versions import check_version


@cache
def load() -> None:
    check_version(torch.__version__)
    path = library_path()
    if not Path(path).exists():
        raise RuntimeError(
            f"coop: its native library is not at {path}; `pip install .` or `make build` makes it"
        )
    try:
        torch.ops.load_library(path)
    except OSError as error:
        # PyTorch says only that it could not; the linker's own words are behind that.
        if "undefined symbol" not in f"{error} {error.__cause__}":
            raise
        raise RuntimeError(
            f"coop: {path} was built for another PyTorch than {torch.__version__}: install coop "
            "again, so that it is built for this PyTorch"
        ) from error
    log.debug("%s, for PyTorch %s, is loaded", path, torch.ops.coop.built_for_torch())


@cache
def start() -> None:
    """Before the first budget. Throws if not every operator is seen: nothing begins then."""
    from coop._self_test import self_test
    from coop._warnings import enable_warnings

    load()
    torch.ops.coop.prove()
    self_test()
    enable_warnings()
    log.debug("every operator is seen: the self-test has passed")


def budget(
    nbytes: int,
    *,
    device: torch.device | str | None = None,
    stress: bool = False,
    verify: bool = False,
    audit: bool = False,
    small_limit: int = 64 << 10,
    policy: str = "coop",
    max_slowdown: float | None = None,
    pace_window: float = 5.0,
) -> AbstractContextManager[object]:
    """For our own tests: a budget in which tensors of more than `small_limit` bytes may go, and on
    any device that the library knows."""
    from coop._budget import budget

    made = budget(
        nbytes,
        device=None if device is None or torch.device(device).type == _TESTED else device,
        stress=stress,
        verify=verify,
        audit=audit,
        policy=policy,
        max_slowdown=max_slowdown,
    )
    if device is not None and torch.device(device).type == _TESTED:
        made.device = torch.device(device)
        made._sizes = {made.device: nbytes}
    made._small_limit = small_limit
    made._pace_window = pace_window
    return made


_TESTED = "second"  # that has no GPU, and several devices (tests/plugin/second_device.cpp)


def stats(device: torch.device | str | None = None) -> dict[str, int]:
    """Counters of the budget that is in force, or of the last one."""
    return torch.ops.coop.stats(as_device(device))


def as_device(device: torch.device | str | None) -> torch.device | None:
    """With its number: of "cuda", that of the current one."""
    if device is None:
        return None
    chosen = torch.device(device)
    if chosen.type == "cuda" and chosen.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu") if chosen.type == "cpu" else chosen


def export(tensor: torch.Tensor) -> torch.Tensor:
    """Bring the tensor's memory back, and keep it where it is for as long as it lives."""
    torch.ops.coop.export_tensor(tensor)
    return tensor
