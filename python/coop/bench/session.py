"""One call of `coop bench`: what is left to do is done, in the time there is, and shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from coop._text import table
from coop.bench.catalog import NETWORKS
from coop.bench.grid import Case, Wanted
from coop.bench.progress import Estimates, Progress, as_duration
from coop.bench.results import Results
from coop.bench.runner import Runner
from coop.bench.showing import Showing

DONE, SOME_LEFT, INTERRUPTED = 0, 1, 130

_BAD = ("crashed", "failed", "timed out")


@dataclass(frozen=True)
class Limits:
    """Seconds."""

    cell: float
    all: float | None


@dataclass
class Session:
    wanted: Wanted
    results: Results
    is_resumed: bool
    """What is there of this commit is not measured again."""
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        cases = self.wanted.cases()
        if self.is_resumed:
            cases = [self.results.missing(self.wanted, case) for case in cases]
        self.cases = [case for case in cases if case.variants]
        self.estimates = Estimates.of(self.wanted, self.results.cells)

    def in_words(self) -> str:
        """For --dry-run."""
        if not self.cases:
            return "All of it is there already."
        rows = [["case", "cells", "takes about"]]
        for case in self.cases:
            took = as_duration(self.estimates.case(case))
            rows.append([case.name, str(len(case.variants)), took])
        return f"{table(rows)}\n\n{self._sum_of(self.cases)}"

    def run(self, limits: Limits, showing: Showing) -> int:
        self.say(f"{self._sum_of(self.cases)}; kept in {self.results.path}\n")
        deadline = time.monotonic() + limits.all if limits.all is not None else None
        progress = Progress(self.estimates, self.cases, self.say)
        runner = Runner(self.wanted, self.results, progress, limits.cell, deadline)
        try:
            left, code = runner.run(self.cases), DONE
        except KeyboardInterrupt:
            left, code = [self.results.missing(self.wanted, it) for it in self.cases], INTERRUPTED
            self.say("interrupted\n")
        found = self.results.of(self.wanted)
        if found:
            showing.show(found)
        left = [case for case in left if case.variants]
        if left:
            self.say(f"left: {self._sum_of(left)}; the same with --resume goes on\n")
            return code or SOME_LEFT
        return code or self._judge(found)

    def _sum_of(self, cases: list[Case]) -> str:
        cells = sum(len(case.variants) for case in cases)
        takes = as_duration(sum(map(self.estimates.case, cases)))
        return f"{_count(cells, 'cell')} in {_count(len(cases), 'process', 'es')}, about {takes}"

    def _judge(self, found: list[dict]) -> int:
        """A policy of ours that fails, or leaves other numbers, is a fault."""
        ours = [it for it in found if it["variant"].partition("@")[0] in self.wanted.policies]
        bad = [it for it in ours if it["status"] in _BAD or it.get("losses") == "different"]
        for cell in bad:
            why = cell.get("why") or "losses or parameters are not plain PyTorch's"
            self.say(f"{cell['network']}, {cell['variant']}: {cell['status']}: {why}\n")
        return SOME_LEFT if bad else DONE


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else plural}"


def without_missing(networks: list[str], device: str, say: Callable[[str], None]) -> list[str]:
    """Those whose packages are there; of the others it is said what to install."""
    there = []
    for name in networks:
        size = NETWORKS[name].size(device)
        if size is None:
            other = "CPU" if device == "cuda" else "GPU"
            say(f"{name} is left out: it is for a {other} only\n")
        elif size.is_missing:
            say(f"{name} is left out: it needs {size.needs} (pip install {size.needs})\n")
        else:
            there.append(name)
    return there
