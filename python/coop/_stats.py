"""What happened inside a budget, in numbers."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass

import torch

from coop import _plugin
from coop._log import log
from coop._text import as_bytes, as_time, table

_MOST_SHOWN = 8


@dataclass(frozen=True)
class Recomputed:
    """How often an operator was run again, and how long that took."""

    op: str
    times: int
    ns: int


@dataclass(frozen=True)
class Stats:
    """Counters of one scope of a budget. What lies outside the pool is counted as well."""

    budget_bytes: int
    used_bytes: int
    peak_bytes: int
    operators: int
    evictions: int
    recomputations: int
    recomputing_ns: int
    searches: int
    fragmentation: float
    """Of the budget, free when an allocation that had to evict was served: the mean."""
    held_by_lineage_bytes: int
    """In tensors that the program dropped, and that others would be recomputed from."""
    made_bytes: int
    """By operators; of those, what could not be evicted, by why:"""
    tainted_bytes: dict[str, int]
    by_op: tuple[Recomputed, ...]
    """The longest first."""

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            ("budget", as_bytes(self.budget_bytes)),
            ("used", as_bytes(self.used_bytes)),
            ("peak", as_bytes(self.peak_bytes)),
            ("operators", f"{self.operators:,}"),
            ("evictions", f"{self.evictions:,}"),
            ("recomputations", f"{self.recomputations:,}"),
            ("time recomputing", as_time(self.recomputing_ns)),
            ("searches", f"{self.searches:,}"),
            ("fragmentation", f"{self.fragmentation:.1%}"),
            ("held by lineage", as_bytes(self.held_by_lineage_bytes)),
        ]
        text = table(rows)
        tainted = sorted(self.tainted_bytes.items(), key=lambda each: -each[1])
        if tainted:
            rows = [("  " + why, as_bytes(nbytes)) for why, nbytes in tainted]
            text += f"\nmade, {as_bytes(self.made_bytes)}; never evicted, by why\n{table(rows)}"
        if self.by_op:
            shown = self.by_op[:_MOST_SHOWN]
            rows = [("  " + each.op, f"{each.times:,}", as_time(each.ns)) for each in shown]
            text += f"\nrecomputed, by operator\n{table(rows)}"
        return text


def stats(device: torch.device | str | None = None) -> Stats:
    """Counters of the budget that is in force, or of the last one; of several, of the one that
    began last, or of the one on this device."""
    _plugin.load()
    device = _plugin.as_device(device)
    counters = torch.ops.coop.stats(device)
    times, ns = torch.ops.coop.recomputed_by_operator(device)
    by_op = [Recomputed(op, times[op], ns[op]) for op in times]
    made = torch.ops.coop.made_bytes(device)
    return Stats(
        budget_bytes=counters["budget_bytes"],
        used_bytes=counters["held_bytes"],
        peak_bytes=counters["peak_held_bytes"],
        operators=counters["operators"],
        evictions=counters["evictions"],
        recomputations=counters["replays"],
        recomputing_ns=sum(each.ns for each in by_op),
        searches=counters["searches"],
        fragmentation=torch.ops.coop.fragmentation(device),
        held_by_lineage_bytes=counters["held_by_lineage"],
        made_bytes=sum(made.values()),
        tainted_bytes={why: n for why, n in made.items() if n > 0 and why != "none"},
        by_op=tuple(sorted(by_op, key=lambda each: -each.ns)),
    )


def log_stats(what_happens: str, device: torch.device) -> None:
    """Of the budget on that device."""
    if not log.isEnabledFor(logging.INFO):
        return
    counted = stats(device)
    log.info(
        "budget of %s %s: peak %s, %d tensors evicted, %d operators recomputed in %s",
        as_bytes(counted.budget_bytes),
        what_happens,
        as_bytes(counted.peak_bytes),
        counted.evictions,
        counted.recomputations,
        as_time(counted.recomputing_ns),
    )
    for each in counted.by_op:
        log.debug("recomputed %s: %d times, %s", each.op, each.times, as_time(each.ns))
