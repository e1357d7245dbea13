"""`coop run --trace`: the whole program, a step for each of its optimizer's."""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from coop._recording import record

_recording: record | None = None
_process = 0


def begin(path: Path) -> None:
    global _recording, _process
    _recording = record(path).__enter__()
    _process = os.getpid()
    first: list[weakref.ref[Optimizer]] = []

    def after_step(optimizer: Optimizer, *_) -> None:
        if not first or first[0]() is None:
            first[:] = [weakref.ref(optimizer)]
        if first[0]() is optimizer and _recording is not None and os.getpid() == _process:
            _recording.step()

    register_optimizer_step_post_hook(after_step)


def end() -> None:
    global _recording
    ended, _recording = _recording, None
    if ended is None or os.getpid() != _process:
        return
    try:
        ended.__exit__(None, None, None)
    except (OSError, RuntimeError) as error:
        print(f"coop run: {ended.path} was not written: {error}", file=sys.stderr)
