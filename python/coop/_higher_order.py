"""Operators that take functions (torch.cond, flex_attention, what torch.export leaves behind).

Python dispatches them, and knows nothing of keys that it has no name for. They have nothing to do
with us: the operators that their functions call are seen like any other.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import wraps

import torch

from coop._replaced import replaced


def higher_order_operators_pass() -> AbstractContextManager[None]:
    keys = [torch._C._dispatch_key_parse(name) for name in torch.ops.coop.dispatch_keys()]
    compute = getattr(torch._ops, "_compute_keyset", None)
    if compute is None:  # another version does it otherwise: those operators fail, no others
        return nullcontext()

    @wraps(compute)
    def compute_without_ours(args, kwargs, non_fallthrough_keys):
        for key in keys:
            non_fallthrough_keys = non_fallthrough_keys.remove(key)
        return compute(args, kwargs, non_fallthrough_keys)

    return replaced(torch._ops, "_compute_keyset", compute_without_ours)
