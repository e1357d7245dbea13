"""Measures a grid, case by case, in the time there is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from coop.bench.catalog import NETWORKS
from coop.bench.grid import Case, Wanted
from coop.bench.process import Child, CrashedError, TimedOutError
from coop.bench.progress import Progress
from coop.bench.results import Results


class RefusedError(Exception):
    """Nothing can be measured here; and why."""


class _TimeIsUpError(Exception):
    pass


@dataclass
class Runner:
    wanted: Wanted
    results: Results
    progress: Progress
    cell_limit: float
    """Seconds, after which a cell counts as one that hangs."""
    deadline: float | None = None
    """A moment of time.monotonic(), at which all is to be over."""
    start: Callable[[dict], Child] = Child
    _waiting: dict[Case, Child] = field(default_factory=dict)

    def run(self, cases: Sequence[Case]) -> list[Case]:
        """What is left when the time is up."""
        try:
            return self._run([case for case in cases if case.variants])
        finally:
            for child in self._waiting.values():
                child.kill()

    def _run(self, left: list[Case]) -> list[Case]:
        while left:
            try:
                self._measure(left[0], left[1:2])
            except _TimeIsUpError:
                rest = self.results.missing(self.wanted, left[0])
                return [rest, *left[1:]] if rest.variants else left[1:]
            left = left[1:]
        return []

    def _measure(self, case: Case, following: list[Case]) -> None:
        """In another process again, where one was lost with a part of it."""
        variants = list(case.variants)
        while variants:
            rest = case.only(variants)
            if self.deadline is not None and not self.progress.fits(rest, self._time_left()):
                raise _TimeIsUpError
            done = self._measure_in_one_process(rest, following)
            variants = variants[done:]

    def _start_ahead(self, following: list[Case]) -> None:
        """On a GPU the process of the next case starts with this one's, and waits: what it imports
        takes a good part of a case. On a CPU that would cost the steps that are timed."""
        for case in following if self.wanted.device == "cuda" else ():
            if case not in self._waiting:
                self._waiting[case] = self.start(self.wanted.told(case))

    def _measure_in_one_process(self, case: Case, following: list[Case]) -> int:
        """How many of its cells are done."""
        done = 0
        began = time.monotonic()
        facts: dict = {}
        with self._waiting.pop(case, None) or self.start(self.wanted.told(case)) as child:
            self._start_ahead(following)
            child.tell("begin")
            while done < len(case.variants):
                ends = time.monotonic() + self.cell_limit
                try:
                    said = child.next(min(ends, self.deadline or ends))
                except TimedOutError:
                    if self.deadline is not None and time.monotonic() >= self.deadline:
                        raise _TimeIsUpError from None
                    why = f"nothing came for {self.cell_limit:.0f} s"
                    said = _lost(case.variants[done], "timed out", why)
                except CrashedError as error:
                    said = _lost(case.variants[done], "crashed", str(error))
                if said is None:
                    break
                if "refused" in said:
                    raise RefusedError(said["refused"])
                if "cell" not in said:  # or else a sign of life
                    facts = said.get("facts", facts)
                    continue
                took, began = time.monotonic() - began, time.monotonic()
                self._keep(case, said["variant"], facts, said["cell"], took)
                done += 1
                if said.get("is_lost"):
                    break
        if done == 0:
            why = "it ended without a word"
            self._keep(case, case.variants[0], facts, {"status": "crashed", "why": why}, 0)
            done = 1
        return done

    def _keep(self, case: Case, variant: str, facts: dict, cell: dict, took: float) -> None:
        size = NETWORKS[case.network].size(self.wanted.device)
        kept = self.results.keep(
            self.wanted,
            case,
            variant,
            batch=size.batch,
            when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            took_s=round(took, 3),
            **facts,
            **cell,
        )
        self.progress.done(kept)

    def _time_left(self) -> float:
        return self.deadline - time.monotonic()


def _lost(variant: str, status: str, why: str) -> dict:
    return {"variant": variant, "cell": {"status": status, "why": why}, "is_lost": True}
