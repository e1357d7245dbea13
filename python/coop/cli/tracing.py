"""`coop run --trace`: the whole program, with its steps.

A step ends with the optimizer's; the next begins when a module is called again, so that what comes
after the last is a part of that one. All up to the end of the first counts as preparation.
"""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path

from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from coop._recording import record


class _Steps:
    def __init__(self, recording: record) -> None:
        self._recording = recording
        self._first: weakref.ref[Optimizer] | None = None
        self._next = None  # the hook that waits for it

    def after_step(self, optimizer: Optimizer, *_) -> None:
        """Of several optimizers the first counts, for as long as it lives."""
        if self._first is None or self._first() is None:
            self._first = weakref.ref(optimizer)
        if self._first() is not optimizer:
            return
        if self._next is not None:
            self.before_forward()  # it went without a module
        self._next = register_module_forward_pre_hook(self.before_forward)

    def before_forward(self, *_) -> None:
        if self._next is None or _recording is None or os.getpid() != _process:
            return
        self._next.remove()
        self._next = None
        self._recording.step()


_recording: record | None = None
_process = 0


def begin(path: Path) -> None:
    global _recording, _process
    _recording = record(path).__enter__()
    _process = os.getpid()
    register_optimizer_step_post_hook(_Steps(_recording).after_step)


def end() -> None:
    global _recording
    ended, _recording = _recording, None
    if ended is None or os.getpid() != _process:
        return  # forked
    try:
        ended.__exit__(None, None, None)
    except (OSError, RuntimeError) as error:
        print(f"coop run: {ended.path} was not written: {error}", file=sys.stderr)
