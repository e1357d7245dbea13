"""`coop run --live`: what happens in the budget, in a line at the foot of the terminal.

The line has the last row for itself: the terminal is told to scroll those above it (its scrolling
region), as apt does. So whatever the program prints, its progress bars included, goes on as on a
screen that is one row shorter, and nobody's writing has to be caught. At the end the row is given
back.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from dataclasses import dataclass

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from coop._stats import stats
from coop._text import as_bytes

_INTERVAL = 0.5  # seconds
_FEWEST_ROWS = 4

_SAVE, _RESTORE = "\x1b7", "\x1b8"  # the cursor, and its colours
_DOWN, _UP = "\x1bD", "\x1bM"  # a row, in the same column; below the last one it scrolls
_CLEAR = "\x1b[0m\x1b[2K"  # the row, in no colour


@dataclass(frozen=True)
class Sample:
    seconds: float
    steps: int
    used_bytes: int
    budget_bytes: int
    evictions: int
    recomputations: int
    recomputing_ns: int


def text_of(now: Sample, since: Sample, until: Sample) -> str:
    """What there is now, and what happened in between: in a step if one has ended, or a second."""
    seconds = until.seconds - since.seconds
    steps = until.steps - since.steps
    per = steps or seconds

    def rate(count: int) -> str:
        return f"{count / per:.{0 if count == 0 or count >= 10 * per else 1}f}"

    evicted = rate(until.evictions - since.evictions)
    recomputed = rate(until.recomputations - since.recomputations)
    lost = (until.recomputing_ns - since.recomputing_ns) / 1e9 / seconds
    what = f"{evicted} evicted, {recomputed} recomputed"
    what = f"step {now.steps}: {what}" if steps > 0 else f"{what} a second"
    return f"coop {_of_bytes(now.used_bytes, now.budget_bytes)} | {what} | {lost:.1%} lost"


def _of_bytes(part: int, whole: int) -> str:
    """Short, so that all of it fits into 80 columns: 9.5 of 12.0 MiB."""
    (amount, unit), all_of_it = as_bytes(part).split(), as_bytes(whole)
    return f"{amount if all_of_it.endswith(' ' + unit) else as_bytes(part)} of {all_of_it}"


class LastRow:
    """Of the terminal that a file descriptor writes to."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size: os.terminal_size | None = None  # for which the row is ours

    def write(self, line: str) -> None:
        """In one piece, so that nobody else's comes in between."""
        size = os.get_terminal_size(self._descriptor)
        if size.lines < _FEWEST_ROWS or not self._is_in_front():
            return
        words = ""
        if size != self._size:
            # Whoever writes in the last row goes up first. To set the region moves the cursor.
            words = f"{_DOWN}{_UP}{_SAVE}\x1b[1;{size.lines - 1}r{_RESTORE}"
            self._size = size
        self._put(words + _in_row(size.lines, line[: size.columns - 1]))

    def give_back(self) -> None:
        if self._size is not None:
            self._put(f"{_SAVE}\x1b[r{_RESTORE}" + _in_row(self._size.lines, ""))
            self._size = None

    def _is_in_front(self) -> bool:
        """Not with a shell before it, which has the terminal."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return True  # nobody has it

    def _put(self, words: str) -> None:
        os.write(self._descriptor, words.encode())


def _in_row(row: int, line: str) -> str:
    return f"{_SAVE}\x1b[{row};1H{_CLEAR}{line}{_RESTORE}"


def can_be_shown(descriptor: int) -> bool:
    return os.isatty(descriptor) and os.environ.get("TERM", "dumb") != "dumb"


class Live:
    """A thread that writes, until it is told to stop. A child that is forked has none."""

    def __init__(self, descriptor: int, device: torch.device) -> None:
        self._row = LastRow(descriptor)
        self._device = device
        self._process = os.getpid()
        self._steps = 0
        self._first: weakref.ref[Optimizer] | None = None
        self._is_over = threading.Event()
        self._hook = register_optimizer_step_post_hook(self._after_step)
        self._thread = threading.Thread(target=self._run, name="coop live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if os.getpid() != self._process:
            return
        self._is_over.set()
        self._thread.join(2 * _INTERVAL)  # it may be waiting for the terminal
        try:
            self._row.give_back()
        except OSError:
            return  # it is gone

    def _after_step(self, optimizer: Optimizer, *_) -> None:
        """Of several optimizers the first counts, for as long as it lives."""
        if self._first is None or self._first() is None:
            self._first = weakref.ref(optimizer)
        if self._first() is optimizer:
            self._steps += 1

    def _run(self) -> None:
        since = until = self._sample()
        while not self._is_over.wait(_INTERVAL):
            now = self._sample()
            # What a step did is shown until the next one has ended.
            if now.steps > until.steps or now.steps == 0:
                since, until = until, now
            try:
                self._row.write(text_of(now, since, until))
            except OSError:
                return

    def _sample(self) -> Sample:
        counted = stats(self._device)
        return Sample(
            seconds=time.perf_counter(),
            steps=self._steps,
            used_bytes=counted.used_bytes,
            budget_bytes=counted.budget_bytes,
            evictions=counted.evictions,
            recomputations=counted.recomputations,
            recomputing_ns=counted.recomputing_ns,
        )
