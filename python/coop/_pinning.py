"""Tensors that stay where they are."""

from __future__ import annotations

from itertools import chain
from typing import TypeVar

import torch

from coop import _plugin

_Pinned = TypeVar("_Pinned", torch.Tensor, torch.nn.Module)


def pin(it: _Pinned, *, is_written_elsewhere: bool = False) -> _Pinned:
    """Keep a tensor, or a module's parameters and buffers, resident and unmoved until they die.

    For code that keeps an address longer than the operator runs which it got it for. If such code
    also writes there, where no operator shows it, say so: nothing is recomputed from it then.
    """
    _plugin.load()
    keep = torch.ops.coop.pin_tensor
    tensors = [it] if isinstance(it, torch.Tensor) else None
    if isinstance(it, torch.nn.Module):
        tensors = chain(it.parameters(), it.buffers())
    if tensors is None:
        raise TypeError(f"coop: a tensor or a module can be pinned, not {type(it).__name__}")
    for tensor in tensors:
        keep(tensor)
        if is_written_elsewhere:
            torch.ops.coop.export_tensor(tensor)
    return it
