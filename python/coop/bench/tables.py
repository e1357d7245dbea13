"""What was measured: the tables that one looks at first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coop._text import as_bytes, table
from coop.bench.bounds import Bounds, bound_of
from coop.bench.catalog import NETWORKS
from coop.bench.found import (
    MEANING,
    Found,
    fragmentation,
    overhead,
    search_latency,
    shown,
)
from coop.bench.grid import BATCH, SMALLEST

LOSSES = {
    "equal": "equal",
    "equal with deterministic algorithms": "equal*",
    "different": "DIFFER",
    "plain does not repeat": "plain differs",
}


def brief(found: Found, bounds: Bounds) -> str:
    """What one looks for first."""
    parts = [_head(found), _at_one_ratio(found, bounds), _searches(found), _free(found)]
    parts += [_peers(found), _smallest(found), _batches(found), MEANING]
    return "\n\n".join(part for part in parts if part)


def _head(found: Found) -> str:
    def all_of(name: str) -> str:
        return ", ".join(sorted({str(cell[name]) for cell in found.cells if name in cell}))

    when = sorted(cell["when"][:10] for cell in found.cells)
    days = when[0] if when[0] == when[-1] else f"{when[0]} to {when[-1]}"
    steps = ", ".join(str(it) for it in sorted({cell["timed"] for cell in found.cells}))
    return (
        f"{all_of('device_name')}; PyTorch {all_of('torch')}; commit {all_of('commit')}; "
        f"{days}; the middle of {steps} steps"
    )


def plain_columns(found: Found, network: str) -> list[str]:
    cell = found.plain(network)
    if cell is None:
        return ["", "", ""]
    return [
        str(cell["batch"]),
        f"{1e3 * cell['plain_s']:.1f} ms",
        as_bytes(cell["plain_peak_bytes"]),
    ]


def _at_one_ratio(found: Found, bounds: Bounds) -> str:
    policies = found.policies()
    if not policies:
        return ""
    has_bounds = found.device == "cuda" and bool(bounds)
    rows = [["network", "batch", "plain", "peak", "ratio", *policies]]
    rows[0] += ["(lower bound)"] if has_bounds else []
    rows[0] += ["fragmentation", "reserved", "losses"]
    for name in found.networks:
        ratio = _ratio_shown(found, name)
        if ratio is None:
            continue
        cells = {policy: found.at(name, ratio, policy) for policy in policies}
        ours = cells.get("coop")
        rows.append(
            [
                NETWORKS[name].title,
                *plain_columns(found, name),
                f"{ratio:.0%}",
                *(shown(cells[policy], overhead) for policy in policies),
                *([bound_of(bounds, name, found.device, ratio)] if has_bounds else []),
                shown(ours, fragmentation),
                shown(ours, reserved),
                _losses_of_all(list(cells.values())),
            ]
        )
    if len(rows) == 1:
        return ""
    notes = (
        "Fragmentation and reserved (the most, over the budget) are coop's. Losses: of all "
        "policies, bit for bit;\n*: with deterministic algorithms, since plain PyTorch's differ "
        "without."
    )
    if found.device == "cpu":
        notes += " On a CPU most networks are small versions of themselves."
    return f"Overhead: time of a step over a plain step's, less one\n{table(rows)}\n{notes}"


def _ratio_shown(found: Found, network: str) -> float | None:
    """The one that is wanted, or the nearest."""
    wanted = NETWORKS[network].shown_at
    return min(found.ratios(network), key=lambda it: abs(it - wanted), default=None)


def reserved(cell: dict) -> str:
    if cell["reserved_bytes"] is None:
        return f"{cell['peak_bytes'] / cell['budget_bytes']:.1%}"
    return f"{cell['reserved_bytes'] / cell['budget_bytes']:.1%}"


def _losses_of_all(cells: Sequence[dict | None]) -> str:
    """The worst of them."""
    found = {cell["losses"] for cell in cells if cell is not None and "losses" in cell}
    order = ("different", "plain does not repeat", "equal with deterministic algorithms", "equal")
    unknown = sorted(found - set(order))
    worst = next((it for it in order if it in found), None)
    if worst != "different" and unknown:
        return "not compared"
    return LOSSES[worst] if worst else ""


def _searches(found: Found) -> str:
    policies = found.policies()
    rows = [["network", "ratio", *policies, "dtr evicts at once"]]
    for name in found.networks:
        ratio = _ratio_shown(found, name)
        if ratio is None:
            continue
        cells = {policy: found.at(name, ratio, policy) for policy in policies}
        latencies = [shown(cells[policy], _search_columns) for policy in policies]
        rows.append(
            [NETWORKS[name].title, f"{ratio:.0%}", *latencies, shown(cells.get("dtr"), _at_once)]
        )
    if len(rows) == 1:
        return ""
    return f"Search latency: ms a step, of how many searches\n{table(rows)}"


def _search_columns(cell: dict) -> str:
    return f"{search_latency(cell)} of {cell['searches']:.0f}"


def _at_once(cell: dict) -> str:
    return f"{cell['evictions'] / cell['searches']:.1f}" if cell["searches"] else ""


def _free(found: Found) -> str:
    rows = [
        [NETWORKS[name].title, shown(cell, overhead), shown(cell, lambda it: it["losses"])]
        for name in found.networks
        if (cell := found.free(name)) is not None
    ]
    if not rows:
        return ""
    return f"Where nothing binds\n{table([['network', 'coop', 'losses'], *rows])}"


def _peers(found: Found) -> str:
    peers = found.peers()
    rows = [
        [
            NETWORKS[name].title,
            *(shown(found.peer(name, peer), _at_its_memory) for peer in peers),
        ]
        for name in found.networks
        if any(found.peer(name, peer) for peer in peers)
    ]
    if not rows:
        return ""
    title = "Peers: overhead, at which share of plain's peak"
    return f"{title}\n{table([['network', *peers], *rows])}"


def _at_its_memory(cell: dict) -> str:
    return f"{cell['overhead']:.1%} at {cell['memory_ratio']:.0%}"


def _smallest(found: Found) -> str:
    return _by_variant(
        found, SMALLEST, "The smallest ratio that fits", lambda it: f"{it['smallest_ratio']:.0%}"
    )


def _batches(found: Found) -> str:
    limits = sorted({it["limit"] for it in found.cells if it["kind"] == BATCH})
    tables = [
        _by_variant(
            Found(it for it in found.cells if it["limit"] == limit),
            BATCH,
            f"The largest batch that fits into {as_bytes(limit)}",
            lambda it: str(it["largest_batch"]),
        )
        for limit in limits
    ]
    return "\n\n".join(tables)


def _by_variant(found: Found, kind: str, title: str, figure: Callable[[dict], str]) -> str:
    cells = {(it["network"], it["variant"]): it for it in found.cells if it["kind"] == kind}
    variants = list(dict.fromkeys(variant for _, variant in cells))
    rows = [
        [NETWORKS[name].title, *(shown(cells.get((name, it)), figure) for it in variants)]
        for name in found.networks
        if any((name, it) in cells for it in variants)
    ]
    return f"{title}\n{table([['network', *variants], *rows])}" if rows else ""
