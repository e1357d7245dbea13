"""Ways to a tensor's memory that no operator shows: while a budget is in force, they ask first.

Whoever took an address may keep it, and may write there: after that the tensor stays where it is,
and nothing is made again from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps

import torch

from coop._replaced import replaced

_TENSOR_TAKES_ADDRESS = (
    "numpy",
    "__array__",
    "__dlpack__",
    "data_ptr",
    "storage",
    "untyped_storage",
    "share_memory_",
    "is_shared",
    # Written in a loop of Python's, without an operator.
    "apply_",
    "map_",
    "map2_",
)
_TENSOR_LOOKS_ONCE = ("tolist",)
# A storage's own, which somebody may have kept from before the budget. They write without an
# operator, hand the memory to others, or exchange it.
_STORAGE_TAKES_ADDRESS = (
    "resize_",
    "__getitem__",  # a slice shares the memory
    "byteswap",
    "data_ptr",
    "share_memory_",
    "_share_fd_cpu_",
    "_share_filename_cpu_",
    "_set_from_file",
    "_set_cdata",
)
_TO_DLPACK = (
    (torch, "to_dlpack"),
    (torch.utils.dlpack, "to_dlpack"),
    (torch._C, "_to_dlpack"),
    (torch._C, "_to_dlpack_versioned"),
)


def _asking_first(function: Callable, ask: Callable) -> Callable:
    @wraps(function)
    def call(asked, *args, **kwargs):
        # No mode's business, nor that of a tensor which handles its operators itself.
        with torch._C._DisableTorchDispatch():
            ask(asked)
        return function(asked, *args, **kwargs)

    return call


@contextmanager
def raw_access_is_seen() -> Iterator[None]:
    coop = torch.ops.coop
    tensor, storage = torch.Tensor, torch.UntypedStorage
    asked = [(tensor, name, coop.export_tensor) for name in _TENSOR_TAKES_ADDRESS]
    asked += [(tensor, name, coop.bring_back) for name in _TENSOR_LOOKS_ONCE]
    asked += [(storage, name, coop.export_storage) for name in _STORAGE_TAKES_ADDRESS]
    asked += [(module, name, coop.export_tensor) for module, name in _TO_DLPACK]
    with ExitStack() as stack:
        for owner, name, ask in asked:
            if hasattr(owner, name):
                new = _asking_first(getattr(owner, name), ask)
                stack.enter_context(replaced(owner, name, new))
        # A table of C functions that know nothing of us. Without it callers use __dlpack__.
        if hasattr(tensor, "__dlpack_c_exchange_api__"):
            stack.enter_context(replaced(tensor, "__dlpack_c_exchange_api__", None))
        yield
