"""Threads that a program starts inside a budget are inside, too.

Without that their operators would not be seen: what they read could be evicted, and what they write
would be lost. PyTorch's own threads (autograd's, TorchScript's) inherit the budget by themselves.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from functools import wraps

import torch

from coop._replaced import replaced


def threads_inherit() -> AbstractContextManager[None]:
    start = threading.Thread.start

    @wraps(start)
    def start_inside(thread: threading.Thread) -> None:
        if torch.ops.coop.is_thread_in_scope():
            run = thread.run

            def run_inside() -> None:
                del thread.run  # so that the two do not keep each other
                torch.ops.coop.enter_thread()
                run()

            thread.run = run_inside
        start(thread)

    return replaced(threading.Thread, "start", start_inside)
