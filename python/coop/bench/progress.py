"""How long it will take, and how far it is."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coop.bench.bounds import Bounds, read_bounds
from coop.bench.catalog import NETWORKS
from coop.bench.grid import BATCH, FREE, FREE_ROUNDS, SMALLEST, Case, Wanted

# Of a process. On a GPU all that it imports is there by then (Runner): what is left is CUDA itself.
_START = {"cuda": 2.5, "cpu": 5.0}
_MAKE = {"cuda": 1.0, "cpu": 0.3}  # a network, for every run of it
_COMPILE = {"cuda": 30.0, "cpu": 60.0}
_TRIALS, _TRIAL_STEPS = 8, 6
_BETWEEN = 9  # plain steps, after others on a GPU; on a CPU there is one for each
_SLOWER = {"save_on_cpu": 4.0, "checkpoint": 1.4}  # than plain
_SLOWER_AS_A_RULE = 1.3  # with what is run again where steps have to be compared apart


def as_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


@dataclass(frozen=True)
class Estimates:
    """From what the same took before, if it is known; else from the time of a plain step."""

    wanted: Wanted
    took: dict[tuple, float]
    plain: dict[str, float]
    bounds: Bounds = field(default_factory=read_bounds)

    @classmethod
    def of(cls, wanted: Wanted, cells: Sequence[dict]) -> Estimates:
        known = [cell for cell in cells if cell["device"] == wanted.device]
        return cls(
            wanted,
            {_like(cell): cell["took_s"] for cell in known if cell["timed"] == wanted.timed},
            {cell["network"]: cell["plain_s"] for cell in known if "plain_s" in cell},
        )

    def case(self, case: Case) -> float:
        """The first of its cells has the start of the process in it."""
        return sum(self.cell(case, variant) for variant in case.variants)

    def cell(self, case: Case, variant: str) -> float:
        like = (case.network, case.kind, case.ratio, variant)
        if like in self.took:
            return self.took[like]
        device = self.wanted.device
        network, make = NETWORKS[case.network], _MAKE[device]
        step = self.plain.get(case.network, network.size(device).step_s)
        steps = self.wanted.warm_up + self.wanted.timed
        first = self._begin(steps * step) if variant == case.variants[0] else 0.0
        name = variant.partition("@")[0]
        if variant == "plain" or (name == "compile" and network.not_compiled):
            return first
        if device == "cuda" and self.bounds.get((network.trace, case.ratio), 0.0) is None:
            return first + make + step  # it cannot fit, and fails at once
        if case.kind in (SMALLEST, BATCH):
            return first + _TRIALS * (make + 1.5 * _TRIAL_STEPS * step)
        compiling = _COMPILE[device] if name == "compile" else 0.0
        rounds = FREE_ROUNDS if case.kind == FREE else 1
        between = _BETWEEN if device == "cuda" else steps
        turn = 2 * make + (_SLOWER.get(name, _SLOWER_AS_A_RULE) * steps + between) * step
        partners = _START[device] if device == "cpu" else 0.0
        return first + compiling + rounds * (partners + turn)

    def _begin(self, run: float) -> float:
        """The process, and its first plain run; on a CPU another one beside it, for its peak."""
        device = self.wanted.device
        start = _START[device] + _MAKE[device] + run
        return 2 * start if device == "cpu" else start


def _like(cell: dict) -> tuple:
    return cell["network"], cell["kind"], cell["ratio"], cell["variant"]


@dataclass
class Progress:
    """Said line by line, with the time that is left."""

    estimates: Estimates
    cases: Sequence[Case]
    say: Callable[[str], None]
    _began: float = field(default_factory=time.monotonic)
    _done: int = 0
    _expected: float = 0.0
    """For what is done."""

    def __post_init__(self) -> None:
        self._cells = sum(len(case.variants) for case in self.cases)
        self._all = sum(map(self.estimates.case, self.cases))
        self._by_cell = {
            (case.network, case.kind, case.ratio, variant): self.estimates.cell(case, variant)
            for case in self.cases
            for variant in case.variants
        }

    def fits(self, case: Case, seconds: float) -> bool:
        """Whether there is time for the next of its cells."""
        return self._pace * self.estimates.cell(case, case.variants[0]) <= seconds

    def done(self, cell: dict) -> None:
        self._done += 1
        self._expected += self._by_cell[_like(cell)]
        left = self._pace * max(self._all - self._expected, 0)
        where = f"[{self._done}/{self._cells}, about {as_duration(left)} left]"
        self.say(f"{where} {in_a_line(cell)}\n")

    @property
    def _pace(self) -> float:
        """How much longer than expected it has taken so far. A little says nothing yet."""
        spent = time.monotonic() - self._began
        return (spent + 30) / (self._expected + 30)


def in_a_line(cell: dict) -> str:
    where = cell["kind"] if cell["ratio"] is None else f"{cell['ratio']:.0%}"
    return f"{cell['network']} {where}, {cell['variant']}: {_found(cell)}"


def _found(cell: dict) -> str:
    if cell["status"] != "ok":
        why = textwrap.shorten(cell.get("why", ""), 100, placeholder=" ...")
        return cell["status"] + (f" ({why})" if why else "")
    if "smallest_ratio" in cell:
        return f"fits into {cell['smallest_ratio']:.0%}"
    if "largest_batch" in cell:
        return f"a batch of {cell['largest_batch']}"
    return f"{cell['overhead']:+.1%}, {1e3 * cell['step_s']:.1f} ms"
