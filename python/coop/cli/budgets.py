"""What every budget would cost a recorded program, as the simulator has it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

_GRID = 20  # shares of the peak are tried in twentieths
_TOO_CLOSE = 0.005  # to show both
_LEAST_POOL = 512  # bytes


@dataclass(frozen=True)
class Row:
    budget_bytes: int
    ratio: float
    """Of the peak."""
    overhead: float | None
    """Of a later step, against the same without a budget. None: it does not fit."""
    recomputed_calls: int | None
    """In that step."""
    recomputing: float | None = None
    """What that takes, and moving, of the time of operators alone."""

    @property
    def fits(self) -> bool:
        return self.overhead is not None


@dataclass(frozen=True)
class Own:
    """What a step takes beside its operators, measured; all in nanoseconds."""

    operators: int
    own_ns: float
    """Coop's own, while a budget binds."""
    other_ns: float
    """All else: Python's, PyTorch's, waiting for data."""

    def overhead(self, recomputing: float, recomputed_calls: int, step_ns: float) -> float:
        """Of a whole step. What is run again has to be seen to, like what runs; nothing is where
        nothing has to go."""
        own_ns = self.own_ns * (1 + recomputed_calls / self.operators) if recomputed_calls else 0
        return (recomputing * step_ns + own_ns) / (step_ns + self.other_ns)


@dataclass(frozen=True)
class Costs:
    peak_bytes: int
    step_ns: float
    """The last step, without a budget: all its operators."""
    rows: list[Row]
    """The largest budget first."""
    there: int
    """Bytes. Rows of more than that are for comparison: nobody can have them."""
    own: Own | None = None
    """None: it was not measured."""

    @property
    def possible(self) -> list[Row]:
        """Down to the first that does not fit. A smaller one may do so by luck."""
        return list(takewhile(lambda row: row.fits, self.rows))

    @property
    def smallest(self) -> Row | None:
        return self.possible[-1] if self.possible else None

    @property
    def within_reach(self) -> list[Row]:
        return [row for row in self.possible if row.budget_bytes <= self.there]

    @property
    def advised(self) -> Row | None:
        """Without a knee, the smallest; but if there is less than the peak, all that there is."""
        rows = self.within_reach
        if not rows:
            return None
        return self.knee or (rows[0] if self.there < self.peak_bytes else rows[-1])

    @property
    def knee(self) -> Row | None:
        """Where the overhead lies farthest below the straight line from the first to the last of
        those within reach. None: nowhere below."""
        rows = self.within_reach
        if len(rows) < 3:
            return None
        first, last = rows[0], rows[-1]
        slope = (last.overhead - first.overhead) / (first.ratio - last.ratio)

        def below(row: Row) -> float:
            return first.overhead + slope * (first.ratio - row.ratio) - row.overhead

        best = max(rows[1:-1], key=below)
        return best if below(best) > 0 else None


@dataclass(frozen=True)
class Simulator:
    path: str
    trace: Path
    steps: int
    """Of the trace. What comes after them is not looked at."""
    own: Own | None

    def costs(
        self, there: int, ratios: Sequence[float] | None, picture: Path | None
    ) -> Costs | None:
        """What there is counts among what is tried, if nothing else is asked for. None: nothing was
        found that it fits into."""
        smallest = self._run("run", "--policy", "coop", "--budget", str(_LEAST_POOL))
        found, peak = smallest.get("smallest_budget_bytes", _LEAST_POOL), smallest["peak_bytes"]
        if found is None:
            return None
        least = self._ratio_of(found, peak)
        tried = sorted({*(ratios or _shares(least, _ratio(there, peak))), least}, reverse=True)
        plot = ["--plot", str(picture)] if picture else []
        words = ["--policies", "coop", "--ratios", ",".join(map(str, tried)), *plot]
        results = self._run("sweep", *words)["results"]
        step_ns = max(it["base_ns"] or 0 for it in results)
        return Costs(peak, step_ns, [self._row(it, step_ns) for it in results], there, self.own)

    def _row(self, result: dict, step_ns: float) -> Row:
        recomputing, calls = result["overhead"], result["recomputed_calls"]
        overhead = recomputing
        if recomputing is not None and self.own is not None:
            overhead = self.own.overhead(recomputing, calls, step_ns)
        return Row(result["budget_bytes"], result["ratio"], overhead, calls, recomputing)

    def _ratio_of(self, budget: int, peak: int) -> float:
        """One that can be read, a little above, if it fits there as well; else to the byte."""
        readable = math.ceil(1000 * budget / peak) / 1000
        tried = self._run("run", "--policy", "coop", "--ratio", str(readable))
        if tried["status"] == "ok":
            return readable
        return _ratio(budget, peak)

    def _run(self, command: str, *words: str) -> dict:
        """Progress and complaints are the simulator's own, on stderr."""
        options = ["--steps", str(self.steps), "--json"]
        done = subprocess.run(
            [self.path, command, str(self.trace), *words, *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0:
            sys.exit(done.returncode)
        return json.loads(done.stdout)


def _shares(least: float, there: float) -> list[float]:
    """Of the peak: those that are more than the least."""
    grid = [i / _GRID for i in range(1, _GRID + 1)]
    if there < 1:
        grid = [there, *(share for share in grid if abs(share - there) > _TOO_CLOSE)]
    return [share for share in grid if share > least]


def _ratio(budget: int, peak: int) -> float:
    return (budget + 0.5) / peak  # it gives whole bytes, rounded down
