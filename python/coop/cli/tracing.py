"""`coop run --trace`, `--report` and `coop plan`: the program's steps are recorded.

A step ends with the optimizer's; the next begins when a module is called again, so that what comes
after the last is a part of that one. All up to the end of the first counts as preparation.

For `coop plan` a few more are measured on a CPU, which are not recorded: what coop itself takes of
them.
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
from coop.cli.rank import rank
from coop.cli.settings import Settings, notes_beside

_MEASURED_STEPS = 2


class Measuring:
    """Of steps that the engine hears as it does when memory is short: where their time goes."""

    @classmethod
    def begin(cls) -> Measuring | None:
        """None: on a GPU, where what the host takes is not lost."""
        return cls() if torch.ops.coop.begin_own_time() else None

    def __init__(self) -> None:
        self._steps: list[dict[str, float]] = []
        self._began = time.perf_counter_ns()

    def step_ends(self) -> bool:
        """Whether there have been enough."""
        took = time.perf_counter_ns() - self._began
        operators, own_ns, kernel_ns = torch.ops.coop.end_own_time()
        other_ns = max(0, took - own_ns - kernel_ns)
        self._steps.append({"operators": operators, "own_ns": own_ns, "other_ns": other_ns})
        if len(self._steps) == _MEASURED_STEPS:
            return True
        torch.ops.coop.begin_own_time()
        self._began = time.perf_counter_ns()
        return False

    def result(self) -> dict[str, float] | None:
        """The fastest: whatever else the machine does makes it longer."""
        return min(self._steps, key=lambda it: it["own_ns"] + it["other_ns"], default=None)


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
        self._measuring: Measuring | None = None
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
        if self._record is not None:
            self._steps += 1
            self._whole = self._begun
            self._tell()
        elif self._measuring is None:
            return  # there were enough
        if self._next is not None:
            self._before_forward()  # it went without a module
        self._next = register_module_forward_pre_hook(self._before_forward)

    def _before_forward(self, *_) -> None:
        if self._next is None or os.getpid() != self._process:
            return
        self._next.remove()
        self._next = None
        if self._measuring is not None:
            if self._measuring.step_ends():
                self._leave_for_good()
            return
        if self._record is None:
            return
        wanted = self._settings.steps
        if wanted is not None and self._steps >= wanted and self._whole > 0:
            return self._have_enough()
        if self._begun == 0:
            # In the first step memory was touched that never had been: that takes its time.
            torch.ops.coop.measure_costs_anew()
        self._begun += 1
        self._record.step()

    def _have_enough(self) -> None:
        """The program is to end, after what is still to be measured."""
        if self._end_record():
            self._measuring = Measuring.begin()
        if self._measuring is None:
            self._leave_for_good()
        self._say(f"{_MEASURED_STEPS} more, for what coop itself takes")

    def _leave_for_good(self) -> None:
        self.end()
        self._is_over = True
        register_module_forward_pre_hook(self._leave)
        self._leave()

    def _leave(self, *_) -> None:
        """As `sys.exit()`; again and again, if somebody catches that and goes on."""
        if os.getpid() == self._process:
            sys.exit(0)

    @property
    def _is_plan(self) -> bool:
        return self._settings.steps is not None and self._settings.report is None

    def _tell(self) -> None:
        if not self._is_plan:
            return
        now = time.perf_counter_ns()
        took, self._step_began = now - self._step_began, now
        self._say(f"step {self._steps} of {self._settings.steps}, {as_time(took)}")

    def _say(self, line: str) -> None:
        """Of several processes the first: the plan is of its steps."""
        if rank() in ("", "0"):
            say(f"coop plan: {line}\n")

    def end(self) -> None:
        """Of the program, too: whatever there is then is what there is."""
        self._end_record()
        measuring, self._measuring = self._measuring, None
        if measuring is not None and os.getpid() == self._process:
            self._note(measuring.result())

    def _end_record(self) -> bool:
        """Whether it has been written down."""
        ended, self._record = self._record, None
        if ended is None or os.getpid() != self._process:
            return False
        try:
            ended.__exit__(None, None, None)
            self._note(None)
        except (OSError, RuntimeError) as error:
            self._complain(error)
            return False
        return True

    def _note(self, own: dict[str, float] | None) -> None:
        if not self._is_plan:
            return
        notes = {
            "program_steps": self._steps,
            "trace_steps": self._whole,
            "budget_bytes": self._budget,
            "own": own,
        }
        try:
            notes_beside(self._path).write_text(json.dumps(notes))
        except OSError as error:
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        hint = "; TMPDIR can name another folder" if self._is_plan else ""
        say(f"{self._settings.command}: {self._path} was not written: {why(error)}{hint}\n")
