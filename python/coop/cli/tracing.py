"""`coop run --trace`, `--report` and `coop plan`: the program's steps are recorded.

A step ends with the optimizer's; the next begins when a module is called again, so that what comes
after the last is a part of that one. All up to the end of the first counts as preparation.
"""

from __future__ import annotations

import json
import os
import sys
import time
import weakref
from pathlib import Path

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from coop._files import why
from coop._recording import record
from coop._text import as_time
from coop.cli.parser import say
from coop.cli.settings import Settings, notes_beside


class Recording:
    """Of this process; what it forks has none."""

    def __init__(self, path: Path, settings: Settings, budget: int) -> None:
        self._path = path
        self._settings = settings
        self._budget = budget
        self._process = os.getpid()
        self._record: record | None = record(path).__enter__()
        self._first: weakref.ref[Optimizer] | None = None
        self._next = None  # the hook that waits for it
        self._is_over = False
        self._steps = 0  # of the program
        self._begun = 0  # of the recording
        self._whole = 0  # of those
        self._step_began = time.perf_counter_ns()
        register_optimizer_step_post_hook(self._after_step)

    def _after_step(self, optimizer: Optimizer, *_) -> None:
        """Of several optimizers the first counts, for as long as it lives."""
        if self._first is None or self._first() is None:
            self._first = weakref.ref(optimizer)
        if self._first() is not optimizer or os.getpid() != self._process:
            return
        if self._is_over:
            self._leave()
        if self._record is None:
            return  # there were enough
        self._steps += 1
        self._whole = self._begun
        self._tell()
        if self._next is not None:
            self._before_forward()  # it went without a module
        self._next = register_module_forward_pre_hook(self._before_forward)

    def _before_forward(self, *_) -> None:
        if self._next is None or self._record is None or os.getpid() != self._process:
            return
        self._next.remove()
        self._next = None
        wanted = self._settings.steps
        if wanted is not None and self._steps >= wanted and self._whole > 0:
            return self._have_enough()
        if self._begun == 0:
            # In the first step memory was touched that never had been: that takes its time.
            torch.ops.coop.measure_costs_anew()
        self._begun += 1
        self._record.step()

    def _have_enough(self) -> None:
        """The program is to end."""
        self.end()
        self._is_over = True
        register_module_forward_pre_hook(self._leave)
        self._leave()

    def _leave(self, *_) -> None:
        """As `sys.exit()`; again and again, if somebody catches that and goes on."""
        if os.getpid() == self._process:
            sys.exit(0)

    def _tell(self) -> None:
        if self._settings.steps is None or self._settings.report is not None:
            return
        now = time.perf_counter_ns()
        took, self._step_began = now - self._step_began, now
        say(f"coop plan: step {self._steps} of {self._settings.steps}, {as_time(took)}\n")

    def end(self) -> None:
        ended, self._record = self._record, None
        if ended is None or os.getpid() != self._process:
            return
        try:
            ended.__exit__(None, None, None)
            if self._settings.steps is not None and self._settings.report is None:
                notes = {
                    "program_steps": self._steps,
                    "trace_steps": self._whole,
                    "budget_bytes": self._budget,
                }
                notes_beside(ended.path).write_text(json.dumps(notes))
        except (OSError, RuntimeError) as error:
            say(f"{self._settings.command}: {ended.path} was not written: {why(error)}\n")
