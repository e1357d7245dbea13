"""Numbers for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def as_bytes(nbytes: int) -> str:
    amount = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1023.95:
            return f"{nbytes} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def as_size(nbytes: int) -> str:
    """Rounded up, so that it is enough."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{math.ceil(10 * nbytes / scale) / 10:.1f} {unit}"
    return f"{nbytes} B"


def as_time(ns: float) -> str:
    for unit, scale in (("s", 1e9), ("ms", 1e6)):
        if ns >= scale:
            return f"{ns / scale:.1f} {unit}"
    return f"{ns / 1e3:.1f} us"


def table(rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        first, *others = zip(row, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)])

    return "\n".join(map(line, rows))
