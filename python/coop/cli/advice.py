"""What `coop plan` says, for people and for programs."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path

from coop._text import as_bytes, as_size, as_time, table
from coop.cli.budgets import Costs, Own, Row
from coop.cli.launch import Program

FEWEST_STEPS = 2  # the first is preparation
STEADY = 5  # after so many one is like the next


@dataclass(frozen=True)
class Recorded:
    trace: Path
    program_steps: int
    trace_steps: int
    """That are whole; without those that are preparation."""
    budget_bytes: int
    own: dict | None = None
    """Of steps that came after those that are recorded."""


@dataclass(frozen=True)
class Plan:
    program: Program
    device: str | None
    """As it was named."""
    recorded: Recorded
    costs: Costs | None
    """None: nothing was found that it fits into."""

    @property
    def is_steady(self) -> bool:
        return self.recorded.program_steps >= STEADY

    @property
    def advised(self) -> Row | None:
        return self.costs and self.costs.advised

    @property
    def command(self) -> list[str] | None:
        if self.advised is None:
            return None
        device = ["--device", self.device] if self.device is not None else []
        budget = ["--budget", as_size(self.advised.budget_bytes).replace(" ", "")]
        return ["coop", "run", *budget, *device, *self.program.arguments]

    def as_dict(self) -> dict:
        costs = self.costs
        return {
            "program": self.program.arguments,
            "steps": self.recorded.program_steps,
            "is_steady": self.is_steady,
            "recorded_in_bytes": self.recorded.budget_bytes,
            "peak_bytes": costs and costs.peak_bytes,
            "step_ns": costs and costs.step_ns,
            "own": costs and costs.own and asdict(costs.own),
            "rows": [asdict(row) for row in costs.rows] if costs else [],
            "smallest": costs and costs.smallest and asdict(costs.smallest),
            "knee": costs and costs.knee and asdict(costs.knee),
            "command": self.command,
        }

    def as_text(self) -> str:
        costs = self.costs
        if costs is None:
            return "No budget was found that these steps fit into."
        lines = [
            f"{self.recorded.program_steps} steps were recorded: "
            f"peak {as_bytes(costs.peak_bytes)}, the last {as_time(costs.step_ns)} of operators",
            *_of_all_else(costs.own),
            "",
            table([("budget", "of the peak", "more time"), *map(_cells, costs.rows)]),
            "",
        ]
        if costs.smallest is not None:
            lines.append(f"smallest  {_as_words(costs.smallest)}")
        lines.append(f"knee      {_as_words(costs.knee) if costs.knee else 'none'}")
        if not self.is_steady:
            lines.append(f"After fewer than {STEADY} steps, a later one may cost less than this.")
        return "\n".join([*lines, "", self._advice()])

    def _advice(self) -> str:
        if self.command is None:
            return f"None of these fits into the {as_bytes(self.recorded.budget_bytes)} there are."
        return f"To run it so: {shlex.join(self.command)}"


def _of_all_else(own: Own | None) -> list[str]:
    if own is None:
        return []
    each = as_time(own.own_ns / max(1, own.operators))
    return [
        f"and {as_time(own.other_ns)} of all else; where a budget binds, coop itself takes "
        f"{as_time(own.own_ns)}, {each} for an operator"
    ]


def _cells(row: Row) -> tuple[str, str, str]:
    more = f"{row.overhead:.1%}" if row.overhead is not None else "does not fit"
    return as_bytes(row.budget_bytes), f"{row.ratio:.1%}", more


def _as_words(row: Row) -> str:
    budget, share, more = _cells(row)
    return f"{budget}, {share} of the peak, {more} more time"
