"""What was measured: one network after the other, with all that is known of it."""

from __future__ import annotations

import math
from collections.abc import Callable

from coop._text import as_bytes, table
from coop.bench.bounds import Bounds, bound_of
from coop.bench.catalog import NETWORKS
from coop.bench.found import (
    MARKS,
    Found,
    fragmentation,
    overhead,
    search_latency,
    shown,
)
from coop.bench.tables import LOSSES, plain_columns, reserved

_PEER_LOSSES = {**LOSSES, "different": "other bits"}  # which nobody has promised

_FIGURES: tuple[tuple[str, Callable[[dict], str]], ...] = (
    ("Fragmentation: free when an allocation that had to evict was served", fragmentation),
    ("Search latency: ms a step", search_latency),
    ("Searches a step", lambda it: f"{it['searches']:.0f}"),
    ("A search, us", lambda it: f"{1e6 * it['search_s'] / (it['searches'] or math.inf):.0f}"),
    ("Evictions a step", lambda it: f"{it['evictions']:.0f}"),
    ("Recomputations a step", lambda it: f"{it['recomputations']:.0f}"),
    ("Recomputing, as coop counts it, of a plain step", lambda it: f"{it['recomputed']:.1%}"),
    ("Moved in a step, MiB", lambda it: f"{it['moved_bytes'] / 2**20:.0f}"),
    ("Reserved at most, of the budget", reserved),
    ("First step, ms", lambda it: f"{1e3 * it['first_s']:.0f}"),
    ("First step: overhead", lambda it: _early(it, "1")),
    ("Fifth step: overhead", lambda it: _early(it, "5")),
    ("Losses", lambda it: LOSSES.get(it["losses"], "not compared")),
)


def _early(cell: dict, number: str) -> str:
    share = cell.get("early_overheads", {}).get(number)
    return "" if share is None else f"{share:.1%}"


def in_full(found: Found, bounds: Bounds) -> str:
    return "\n\n".join(_network(found, bounds, name) for name in found.networks)


def _network(found: Found, bounds: Bounds, name: str) -> str:
    parts = [_title(found, name), _by_ratio(found, bounds, name), _beside_peers(found, name)]
    whys = [f"{_what(it)}: {it['why']}" for it in found.of(name) if "why" in it]
    return "\n".join([*(part for part in parts if part), *whys])


def _title(found: Found, name: str) -> str:
    network = NETWORKS[name]
    if found.plain(name) is None:
        return f"{name}: {network.title}"
    optimizer = "Adam" if network.is_adam else "SGD"
    batch, step, peak = plain_columns(found, name)
    return (
        f"{name}: {network.title}, batch {batch}, {optimizer}; a plain step takes {step}, "
        f"and {peak} at most"
    )


def _what(cell: dict) -> str:
    """Of which one says why it has no figures."""
    where = cell["kind"] if cell["ratio"] is None else f"{cell['ratio']:g}"
    return f"{where}, {cell['variant']}: {cell['status']}"


def _by_ratio(found: Found, bounds: Bounds, name: str) -> str:
    ratios = found.ratios(name)
    if not ratios:
        return ""
    rows = [["memory ratio", *(f"{ratio:g}" for ratio in ratios)]]
    rows += _block(found, name, "Overhead", overhead)
    bound = [bound_of(bounds, name, found.device, ratio) for ratio in ratios]
    rows += [["  (lower bound)", *bound]] if any(bound) else []
    for title, figure in _FIGURES:
        rows += _block(found, name, title, figure)
    return _aligned(rows)


def _beside_peers(found: Found, name: str) -> str:
    peers = [it for peer in ("plain", *found.peers()) if (it := found.peer(name, peer))]
    head = ["beside", "first step", "step", "overhead", "peak", "of plain's", "reserved", "losses"]
    return table([head, *map(_peer_row, peers)]) if peers else ""


def _block(found: Found, name: str, title: str, figure: Callable[[dict], str]) -> list[list[str]]:
    ratios = found.ratios(name)
    return [
        [title],
        *(
            [f"  {policy}", *(shown(found.at(name, ratio, policy), figure) for ratio in ratios)]
            for policy in found.policies(name)
        ),
    ]


def _aligned(rows: list[list[str]]) -> str:
    """Titles stand alone, and are not to widen what is below them."""
    count = max(map(len, rows))
    cells = [row for row in rows if len(row) == count]
    lines = iter(table(cells).splitlines())
    return "\n".join(next(lines) if len(row) == count else row[0] for row in rows)


def _peer_row(cell: dict) -> list[str]:
    if cell["status"] != "ok":
        return [cell["variant"], MARKS[cell["status"]], *6 * [""]]
    held = cell["reserved_bytes"]
    return [
        cell["variant"],
        f"{cell['first_s']:.1f} s",
        f"{1e3 * cell['step_s']:.1f} ms",
        overhead(cell),
        as_bytes(cell["peak_bytes"]),
        f"{cell['memory_ratio']:.1%}",
        as_bytes(held) if held is not None else "",
        _PEER_LOSSES.get(cell.get("losses", ""), ""),
    ]
