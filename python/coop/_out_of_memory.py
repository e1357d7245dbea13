"""What there is to know when a budget was not enough."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch

from coop import _plugin
from coop._text import as_bytes, table

OutOfMemory = torch.OutOfMemoryError


@dataclass(frozen=True)
class Holding:
    """Memory that was held, and by what."""

    what: str
    bytes: int
    blocks: int


@dataclass(frozen=True)
class OutOfMemoryFacts:
    """Where the budget's bytes were when a request could not be served."""

    op: str
    """The operator that ran; empty: none."""
    device: str
    """Whose budget was not enough."""
    asked_bytes: int
    budget_bytes: int
    free_bytes: int
    largest_window_bytes: int
    """The most that could be made free in one piece."""
    smallest_budget_bytes: int
    """That would have served this request, were all else the same; 0: not known, or more than the
    device has."""
    lasting_bytes: int
    """In what cannot be recomputed and the program has: no eviction makes it less."""
    parameter_bytes: int
    """Of those; as far as gradients have been made for them."""
    gradient_bytes: int
    held: tuple[Holding, ...]
    """The largest first."""

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            ("operator", self.op or "none"),
            ("device", self.device),
            ("asked for", as_bytes(self.asked_bytes)),
            ("largest window", as_bytes(self.largest_window_bytes)),
            ("budget", as_bytes(self.budget_bytes)),
            ("free", as_bytes(self.free_bytes)),
        ]
        rows += [
            ("cannot be recomputed", as_bytes(self.lasting_bytes)),
            ("  parameters", as_bytes(self.parameter_bytes)),
            ("  gradients", as_bytes(self.gradient_bytes)),
        ]
        rows += [("held " + each.what, as_bytes(each.bytes)) for each in self.held]
        if self.smallest_budget_bytes:
            rows.append(("budget that would do", as_bytes(self.smallest_budget_bytes)))
        return table(rows)


def last_oom(device: torch.device | str | None = None) -> OutOfMemoryFacts | None:
    """About the last request in a budget, or in one on this device, that could not be served; None
    if there was none."""
    _plugin.load()
    op, where, facts, nbytes, blocks = torch.ops.coop.last_oom(_plugin.as_device(device))
    if not facts:
        return None
    held = [Holding(what, nbytes[what], blocks[what]) for what in nbytes]
    held.sort(key=lambda each: -each.bytes)
    return OutOfMemoryFacts(op=op, device=str(where), held=tuple(held), **facts)
