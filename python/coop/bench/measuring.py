"""What one way of training costs, against plain steps before and after it, or between its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from coop.bench.comparing import Judge
from coop.bench.grid import FREE_ROUNDS
from coop.bench.training import Counters, Run, Trainer
from coop.bench.turns import Partner, take_turns
from coop.bench.ways import PLAIN, Way, counted

_WITHOUT_PLAN = 3  # steps of warm-up, of what makes no plan
_PLAIN_TIMED = 6  # steps of plain between others
_EARLY = (1, 5)


@dataclass(frozen=True)
class Steps:
    warm_up: int
    """So many until a plan has settled; they are not timed."""
    timed: int


@dataclass
class Bench:
    """Of one network, in one process."""

    trainer: Trainer
    steps: Steps
    judge: Judge = field(init=False)
    plain: Run = field(init=False)
    """The first, as long as what is compared with it."""
    peak_bytes: int = field(init=False)
    """What plain PyTorch holds at most: the whole of which a ratio is a part."""
    _pace: float = field(init=False)
    """How long plain steps took in the last block of them, over the same steps in the first."""

    def begin(self) -> None:
        self.plain = self.trainer.run(PLAIN, self.steps.warm_up, self.steps.timed)
        self.peak_bytes = self.peak_of(PLAIN, self.plain)
        self.judge = Judge(self.trainer, self.plain, self.steps.warm_up)
        self._pace = 1.0

    def peak_of(self, way: Way, run: Run) -> int:
        """On a CPU nobody counts for PyTorch: coop does, in a budget that does not bind. All the
        steps: those of some networks differ."""
        if run.peak_bytes is not None:
            return run.peak_bytes
        found = self.trainer.run(counted(way, self.trainer.machine.device), 0, len(run.times))
        return found.peak_bytes

    def policy(self, way: Way, budget: int) -> dict:
        run, figures = self._turns(way, self.steps.warm_up)
        figures |= _counted(run, self._by_the_clock(figures))
        figures |= self.judge.compare(run, way)
        return {**figures, "budget_bytes": budget, "memory_ratio": budget / self.peak_bytes}

    def free(self, way: Way) -> dict:
        """A policy in a budget that does not bind."""
        rounds = [self._turns(way, self.steps.warm_up) for _ in range(FREE_ROUNDS)]
        run, figures = rounds[-1]
        figures |= _counted(run, self._by_the_clock(figures))
        figures |= self.judge.compare(run, way)
        return {**figures, "overhead": statistics.mean(it["overhead"] for _, it in rounds)}

    def peer(self, way: Way) -> dict:
        run, figures = self._turns(way, min(_WITHOUT_PLAN, self.steps.warm_up))
        peak = self.peak_of(way, run)
        ratio = peak / self.peak_bytes
        losses = self.judge.compare_as_timed(run)
        return {**figures, "peak_bytes": peak, "memory_ratio": ratio, "losses": losses}

    def plain_itself(self) -> dict:
        """What peers stand beside."""
        own = _middle(self.plain)
        return {
            **self._of_plain(own),
            **_timed(self.plain),
            "overhead": 0.0,
            "peak_bytes": self.peak_bytes,
            "reserved_bytes": self.plain.reserved_bytes,
            "memory_ratio": 1.0,
        }

    def _turns(self, way: Way, warm_up: int) -> tuple[Run, dict]:
        """Plain before and after: whatever else the machine does meets both alike."""
        run = self.trainer.run(way, warm_up, self.steps.timed)
        begun = min(_WITHOUT_PLAN, self.steps.warm_up)
        block = self.trainer.run(PLAIN, begun, min(_PLAIN_TIMED, self.steps.timed))
        self.judge.saw_plain(block)
        before, self._pace = self._pace, over(self.plain, block)
        return run, self._figures(run, self.plain, (before + self._pace) / 2)

    def _figures(self, run: Run, plain: Run, pace: float) -> dict:
        return {
            **self._of_plain(pace * _middle(plain)),
            **_timed(run),
            "overhead": over(plain, run) / pace - 1,
            "early_overheads": _early(plain, run, pace),
            "peak_bytes": run.peak_bytes,
            "reserved_bytes": run.reserved_bytes,
        }

    def _by_the_clock(self, figures: dict) -> float | None:
        """A plain step, as coop counts time."""
        return figures["plain_s"]

    def _of_plain(self, step: float) -> dict:
        return {
            "plain_s": step,
            "plain_peak_bytes": self.peak_bytes,
            "plain_reserved_bytes": self.plain.reserved_bytes,
        }


@dataclass
class BenchInTurns(Bench):
    """On a CPU, of which others may have much: a plain step before every step, each in a process of
    its own."""

    network: str
    """By its name in the catalogue."""
    beat: Callable[[], None]
    """Says before each pair of steps that it goes on."""

    def begin(self) -> None:
        in_sight = counted(PLAIN, self.trainer.machine.device)
        self.plain, found = self._beside_plain(in_sight, self.steps.warm_up)
        self.peak_bytes = found.peak_bytes
        self.judge = Judge(self.trainer, self.plain, self.steps.warm_up)

    def _turns(self, way: Way, warm_up: int) -> tuple[Run, dict]:
        plain, run = self._beside_plain(way, warm_up)
        self.judge.saw_plain(plain)
        figures = self._figures(run, plain, pace=1.0)
        return run, {**figures, "plain_times_s": _rounded(plain.times)}

    def _by_the_clock(self, figures: dict) -> None:
        """Not known: what a process had of the processor is less, where it had to wait for it."""

    def _beside_plain(self, way: Way, warm_up: int) -> tuple[Run, Run]:
        steps = warm_up, self.steps.timed
        with (
            Partner(self.network, PLAIN, *steps) as plain,
            Partner(self.network, way, *steps) as other,
        ):
            take_turns(plain, [other], self.beat)
            return plain.run(), other.run()


def over(plain: Run, run: Run) -> float:
    """Step by step: those of some networks differ."""
    pairs = zip(run.times, plain.times, strict=False)
    return statistics.median(ours / other for ours, other in [*pairs][run.warm_up :])


def _early(plain: Run, run: Run, pace: float) -> dict[str, float]:
    """Of the first, in which nothing is known yet, and one by which there may be a plan."""
    pairs = [*zip(run.times, plain.times, strict=False)]
    return {
        str(number): ours / other / pace - 1
        for number, (ours, other) in enumerate(pairs, 1)
        if number in _EARLY
    }


def _middle(run: Run) -> float:
    return statistics.median(run.times[run.warm_up :])


def _timed(run: Run) -> dict:
    return {
        "step_s": _middle(run),
        "first_s": run.times[0],
        "host_s": run.host_s,
        "times_s": _rounded(run.times),
    }


def _rounded(times: list[float]) -> list[float]:
    return [round(it, 6) for it in times]


def _counted(run: Run, plain: float | None) -> dict:
    """In one step, on average over those that count. Where it is not known how long plain steps
    take, what is recomputed is compared with the operators of these."""
    before, after = run.before, run.after
    count = len(run.times) - run.warm_up

    def each(name: str) -> float:
        return (after.inner[name] - before.inner[name]) / count

    searches = after.inner["searches"] - before.inner["searches"]
    free = _free_shares(after) - _free_shares(before)
    recomputing = (after.shown.recomputing_ns - before.shown.recomputing_ns) / count
    # Where nothing binds nobody counts how long operators take.
    of_operators = each("replay_ns") / (each("base_ns") or math.inf)
    return {
        "evictions": each("evictions"),
        "recomputations": each("replays"),
        "recomputed": of_operators if plain is None else recomputing / (1e9 * plain),
        "recomputed_of_operators": of_operators,
        "moved_bytes": each("moved_bytes"),
        "searches": each("searches"),
        "search_s": each("search_ns") / 1e9,
        "fragmentation": free / searches if searches else None,
        "fragmentation_of_all": after.shown.fragmentation if after.shown.searches else None,
        "planned_calls": each("planned_calls"),
    }


def _free_shares(counters: Counters) -> float:
    """Summed over searches."""
    return counters.shown.fragmentation * counters.shown.searches
