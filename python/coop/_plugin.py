"""The PyTorch plugin, for our own tests: private, unfinished, CPU only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path

import torch

_LIBRARY = "libcoop_plugin.so"


@cache
def load() -> None:
    """Load the native library: from beside this file, or from where COOP_PLUGIN says."""
    path = Path(os.environ.get("COOP_PLUGIN", Path(__file__).with_name(_LIBRARY)))
    torch.ops.load_library(path)


# Ways to a tensor's memory that no operator shows. Whoever took an address may keep it: after the
# first kind a tensor stays where it is. The second only looks once.
_TAKE_ADDRESS = (
    "numpy",
    "__array__",
    "__dlpack__",
    "data_ptr",
    "storage",
    "untyped_storage",
    "share_memory_",
    "is_shared",
)
_LOOK_ONCE = ("tolist",)


def _asking_first(method: Callable, ask: Callable[[torch.Tensor], None]) -> Callable:
    @wraps(method)
    def call(self, *args, **kwargs):
        ask(self)
        return method(self, *args, **kwargs)

    return call


@contextmanager
def _raw_access_is_seen() -> Iterator[None]:
    asked = dict.fromkeys(_TAKE_ADDRESS, torch.ops.coop.export_tensor)
    asked |= dict.fromkeys(_LOOK_ONCE, torch.ops.coop.bring_back)
    own = {name: torch.Tensor.__dict__[name] for name in asked if name in torch.Tensor.__dict__}
    for name, ask in asked.items():
        setattr(torch.Tensor, name, _asking_first(getattr(torch.Tensor, name), ask))
    try:
        yield
    finally:
        for name in asked:
            if name in own:
                setattr(torch.Tensor, name, own[name])
            else:
                delattr(torch.Tensor, name)  # inherited again


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
        with _raw_access_is_seen():
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
