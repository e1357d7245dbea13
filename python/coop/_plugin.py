"""The PyTorch plugin, for our own tests: private, unfinished, CPU only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

from coop._raw_access import raw_access_is_seen
from coop._threads import threads_inherit

_LIBRARY = "libcoop_plugin.so"


@cache
def load() -> None:
    """Load the native library: from beside this file, or from where COOP_PLUGIN says."""
    path = Path(os.environ.get("COOP_PLUGIN", Path(__file__).with_name(_LIBRARY)))
    torch.ops.load_library(path)


@contextmanager
def budget(
    nbytes: int,
    *,
    stress: bool = False,
    small_limit: int = 64 << 10,
    policy: str = "coop",
) -> Iterator[None]:
    """Run what is inside in this many bytes, beside what existed before.

    stress: after every operator, evict all that may be evicted.
    small_limit: tensors of up to this many bytes are never evicted.
    """
    load()
    torch.ops.coop.enter(nbytes, stress, small_limit, policy)
    try:
        with raw_access_is_seen(), threads_inherit():
            yield
    finally:
        torch.ops.coop.leave()


def stats() -> dict[str, int]:
    """Counters of the budget that is in force."""
    return torch.ops.coop.stats()


def export(tensor: torch.Tensor) -> torch.Tensor:
    """Bring the tensor's memory back, and keep it where it is for as long as it lives."""
    torch.ops.coop.export_tensor(tensor)
    return tensor
