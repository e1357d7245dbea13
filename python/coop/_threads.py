"""Threads that a program starts inside a budget are inside, too.

Without that their operators would not be seen: what they read could be evicted, and what they write
would be lost. PyTorch's own threads (autograd's, TorchScript's) inherit the budget by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from coop._replaced import replaced

# From Python 3.13 on it is the former.
_START = next(
    it for it in ("_start_joinable_thread", "_start_new_thread") if hasattr(threading, it)
)


def threads_inherit() -> AbstractContextManager[None]:
    """By what threading starts a thread with. Errors are caught, and told of, further in: nothing
    of ours is in their tracebacks."""
    start = getattr(threading, _START)

    def start_inside(function: Callable, *args: object, **kwargs: object) -> object:
        if not torch.ops.coop.is_thread_in_scope():
            return start(function, *args, **kwargs)

        def run_inside(*inner: object) -> None:
            torch.ops.coop.enter_thread()
            function(*inner)

        return start(run_inside, *args, **kwargs)

    return replaced(threading, _START, start_inside)
