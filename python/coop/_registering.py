"""Custom operators that may be run again."""

from __future__ import annotations

from typing import TypeVar

import torch

from coop import _plugin
from coop._log import log

_Operator = TypeVar("_Operator")


def register(op: _Operator, *, random: bool = False) -> _Operator:
    """Declare that a custom operator may be run again, so that what it makes can be evicted.

    op: "space::name", "space::name.overload", torch.ops.space.name, one of its overloads, or what
        torch.library.custom_op made of a function.
    random: it draws random numbers, from PyTorch's generator or from one among its arguments.

    What you declare: its results depend on its arguments alone, it gives the same bits each time,
    it writes what its schema says and nothing else, and keeps no tensor and no address.
    Returns `op`, so that it can stand above a definition.
    """
    _plugin.load()
    torch.ops.coop.register_operator(_name_of(op), random)
    log.debug("%s may be run again", _name_of(op))
    return op


def _name_of(op: object) -> str:
    if isinstance(op, str):
        return op
    if isinstance(op, torch._ops.OpOverload):
        return op.name()
    if isinstance(op, torch._ops.OpOverloadPacket):
        return op._qualified_op_name
    if isinstance(op, torch._library.custom_ops.CustomOpDef):
        return op._qualname
    raise TypeError(
        f"coop: an operator is a name like 'myspace::myop', torch.ops.myspace.myop, or what "
        f"torch.library.custom_op made, not {op!r}"
    )
