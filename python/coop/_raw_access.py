"""Ways to a tensor's memory that no operator shows: while a budget is in force, they ask first.

Whoever took an address may keep it, and may write there: after that the tensor stays where it is,
and nothing is made again from it. Those that are known to do no more than look (to save a tensor,
to tell which share their memory) leave it as good as it was, but for its place.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps

import torch

from coop._replaced import replaced

_TENSOR_TAKES_ADDRESS = (
    "numpy",
    "__array__",
    "__dlpack__",
    "storage",
    "share_memory_",
    "is_shared",
    # Written in a loop of Python's, without an operator.
    "apply_",
    "map_",
    "map2_",
)
_TENSOR_TAKES_ADDRESS_OR_READS = ("data_ptr", "untyped_storage")
_TENSOR_LOOKS_ONCE = ("tolist",)
# A storage's own, which somebody may have kept from before the budget. They write without an
# operator, hand the memory to others, or exchange it.
_STORAGE_TAKES_ADDRESS = (
    "resize_",
    "__getitem__",  # a slice shares the memory
    "byteswap",
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
_ONLY_READ = ((torch.Tensor, "__deepcopy__"), (torch, "save"), (torch.serialization, "save"))
# Modules in which addresses are compared, or read from. A Trainer saves its model through most of
# them: were its parameters not to be relied on from then on, next to nothing could be evicted.
_READERS = {
    "safetensors.torch",
    "huggingface_hub.serialization._torch",
    "transformers.modeling_utils",
    "transformers.pytorch_utils",
    "accelerate.utils.modeling",
    # What is traced or compiled: how large its storages are, and who shares one.
    "torch._subclasses.meta_utils",
    "torch._subclasses.fake_tensor",
    "torch._functorch._aot_autograd.collect_metadata_analysis",
    "torch._functorch._aot_autograd.functional_utils",
}
# Read the tensors in a list without an operator, and where in their arguments it is.
_READ_A_LIST = (
    (torch, "tensor", 0),
    (torch, "as_tensor", 0),
    (torch, "asarray", 0),
    (torch.Tensor, "new_tensor", 1),
    (torch._C, "_cuda_jiterator_compile_and_launch_kernel", 4),
)
# Look into all tensors that they are given, without an operator.
_READ_THEIR_TENSORS = (
    (torch.Tensor, "map_"),
    (torch.Tensor, "map2_"),
    (torch._C, "_is_alias_of"),
)
_SCRIPT_MODULE_SAVES = ("save", "save_to_buffer")  # what torch.jit.save calls: all of it in C++


def _tensors_in(values: object) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    if not isinstance(values, list | tuple):
        return []
    inner = [it for it in values if isinstance(it, torch.Tensor | list | tuple)]
    return [tensor for it in inner for tensor in _tensors_in(it)]


def _within(tensor: torch.Tensor) -> torch.Tensor:
    """What a transform of torch.func has in its hands: it knows no operators of ours."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


@contextmanager
def _held(tensors: list[torch.Tensor]) -> Iterator[None]:
    """They are there, and stay in place."""
    coop = torch.ops.coop
    tensors = [_within(it) for it in tensors]
    # No mode's business, nor that of a tensor which handles its operators itself.
    with torch._C._DisableTorchDispatch():
        coop.hold(tensors)
    try:
        yield
    finally:
        with torch._C._DisableTorchDispatch():
            coop.let_go()


def _holding(function: Callable, position: int) -> Callable:
    """The function, while the tensors in its argument are held."""

    @wraps(function)
    def call(*args, **kwargs):
        listed = args[position] if len(args) > position else None
        tensors = _tensors_in(listed) if isinstance(listed, list | tuple) else []
        if not tensors:
            return function(*args, **kwargs)
        with _held(tensors):
            return function(*args, **kwargs)

    return call


def _holding_arguments(function: Callable) -> Callable:
    @wraps(function)
    def call(*args, **kwargs):
        with _held(_tensors_in([*args, *kwargs.values()])):
            return function(*args, **kwargs)

    return call


def _holding_all(save: Callable) -> Callable:
    @wraps(save)
    def call(module, *args, **kwargs):
        with _held([*module.parameters(), *module.buffers()]):
            return save(module, *args, **kwargs)

    return call


def _holding_both(assign: Callable) -> Callable:
    """`x[index] = y` from 2.15 on compares the addresses of the two if y has no dimensions."""

    @wraps(assign)
    def call(tensor, index, value):
        if not isinstance(value, torch.Tensor) or value.ndim > 0:
            return assign(tensor, index, value)
        with _held([tensor, value]):
            return assign(tensor, index, value)

    return call


def _asking_first(function: Callable, ask: Callable) -> Callable:
    @wraps(function)
    def call(asked, *args, **kwargs):
        # No mode's business, nor that of a tensor which handles its operators itself.
        with torch._C._DisableTorchDispatch():
            ask(asked)
        return function(asked, *args, **kwargs)

    return call


class _ThisThread(threading.local):
    only_reads = False


_this_thread = _ThisThread()


def _only_reading(function: Callable) -> Callable:
    """Takes storages only to copy or to save them: nobody writes there."""

    @wraps(function)
    def call(*args, **kwargs):
        before, _this_thread.only_reads = _this_thread.only_reads, True
        try:
            return function(*args, **kwargs)
        finally:
            _this_thread.only_reads = before

    return call


def _is_asked_by_a_reader() -> bool:
    """By the code that has called what was replaced; this, what asks, and `call` are in between."""
    if _this_thread.only_reads:
        return True
    caller = sys._getframe(2).f_back  # none if that is a thread of C's
    return caller is not None and caller.f_globals.get("__name__") in _READERS


def _export_or_pin(tensor: torch.Tensor) -> None:
    coop = torch.ops.coop
    (coop.pin_tensor if _is_asked_by_a_reader() else coop.export_tensor)(tensor)


def _export_unless_pinned(storage: torch.UntypedStorage) -> None:
    if not _is_asked_by_a_reader():
        torch.ops.coop.export_storage(storage)


@contextmanager
def raw_access_is_seen() -> Iterator[None]:
    coop = torch.ops.coop
    tensor, storage = torch.Tensor, torch.UntypedStorage
    asked = [(tensor, name, coop.export_tensor) for name in _TENSOR_TAKES_ADDRESS]
    asked += [(tensor, name, _export_or_pin) for name in _TENSOR_TAKES_ADDRESS_OR_READS]
    asked += [(storage, "data_ptr", _export_unless_pinned)]
    asked += [(tensor, name, coop.bring_back) for name in _TENSOR_LOOKS_ONCE]
    asked += [(storage, name, coop.export_storage) for name in _STORAGE_TAKES_ADDRESS]
    asked += [(module, name, coop.export_tensor) for module, name in _TO_DLPACK]
    with ExitStack() as stack:
        for owner, name, ask in asked:
            if hasattr(owner, name):
                new = _asking_first(getattr(owner, name), ask)
                stack.enter_context(replaced(owner, name, new))
        for owner, name, position in _READ_A_LIST:
            if hasattr(owner, name):
                new = _holding(getattr(owner, name), position)
                stack.enter_context(replaced(owner, name, new))
        for owner, name in _READ_THEIR_TENSORS:
            if hasattr(owner, name):
                new = _holding_arguments(getattr(owner, name))
                stack.enter_context(replaced(owner, name, new))
        module = torch.jit.RecursiveScriptModule
        for name in _SCRIPT_MODULE_SAVES:
            if not hasattr(module, name):
                continue
            stack.enter_context(replaced(module, name, _holding_all(getattr(module, name))))
        for owner, name in _ONLY_READ:
            stack.enter_context(replaced(owner, name, _only_reading(getattr(owner, name))))
        assign = _holding_both(tensor.__setitem__)
        stack.enter_context(replaced(tensor, "__setitem__", assign))
        # A table of C functions that know nothing of us. Without it callers use __dlpack__.
        if hasattr(tensor, "__dlpack_c_exchange_api__"):
            stack.enter_context(replaced(tensor, "__dlpack_c_exchange_api__", None))
        yield
