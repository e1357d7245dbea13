"""What no schedule of recomputation can be better than, for networks that were recorded.

The figures are those of tests/data/h200, whose README says how they were found; an installation has
them beside this file. They hold for the networks as they are on a GPU.
"""

from __future__ import annotations

import csv
from pathlib import Path

from coop.bench.catalog import NETWORKS

_HERE = Path(__file__)
_PLACES = (
    _HERE.with_name("lower_bound.csv"),
    _HERE.parents[3] / "tests/data/h200/lower_bound.csv",
)

Bounds = dict[tuple[str, float], float | None]
"""Overhead by trace and ratio; None: it cannot fit."""


def read_bounds() -> Bounds:
    path = next((it for it in _PLACES if it.exists()), None)
    if path is None:
        return {}
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {
        (row["trace"], float(row["ratio"])): _overhead(row["time"]) for row in csv.DictReader(lines)
    }


def _overhead(time: str) -> float | None:
    return None if time == "none" else float(time) - 1


def bound_of(bounds: Bounds, network: str, device: str, ratio: float | None) -> str:
    """As a table has it: empty where nothing is known."""
    trace = NETWORKS[network].trace
    if device != "cuda" or (trace, ratio) not in bounds:
        return ""
    found = bounds[trace, ratio]
    return "-" if found is None else f"{found:.1%}"
