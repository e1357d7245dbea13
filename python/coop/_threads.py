"""Threads that a program starts inside a budget are inside, too.

Without that their operators would not be seen: what they read could be evicted, and what they write
would be lost. PyTorch's own threads (autograd's, TorchScript's) inherit the budget by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import torch

from coop._replaced import replaced


def threads_inherit() -> AbstractContextManager[None]:
    """What a thread runs from its very beginning is asked for by who starts it. Errors are caught,
    and told of, further in: nothing of ours is in their tracebacks."""
    bootstrap = threading.Thread._bootstrap

    def asked_for(thread: threading.Thread) -> Callable[[], None]:
        if not torch.ops.coop.is_thread_in_scope():
            return partial(bootstrap, thread)

        def bootstrap_inside() -> None:
            torch.ops.coop.enter_thread()
            bootstrap(thread)

        return bootstrap_inside

    return replaced(threading.Thread, "_bootstrap", property(asked_for))
