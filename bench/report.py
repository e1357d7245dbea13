"""Turns the output of the micro-benchmarks (Google Benchmark's JSON) into tables with ratios.

usage: report.py RAW.json [--json FILE]     --json: also write the tables there, as JSON
"""

import argparse
import itertools
import json
import sys
from pathlib import Path

BLOCKS = (1_000, 10_000, 100_000)
TO_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

PATTERNS = {
    "allocate_temporary": "a temporary: allocated, freed at once",
    "allocate_step": "a step: all allocated, freed in reverse",
    "allocate_churn": "churn: replaced at random",
    "allocate_small": "small blocks, replaced at random",
}
FITS = {"from_ends": "from the ends", "best_fit": "best fit"}


def read(path):
    """{(benchmark, variant, arguments): entry}; times in nanoseconds."""
    entries = {}
    raw = json.loads(Path(path).read_text())
    raw["context"].pop("host_name", None)
    for entry in raw["benchmarks"]:
        if entry.get("error_occurred"):
            sys.exit(f"{entry['name']} failed: {entry['error_message']}")
        words = [w for w in entry["name"].split("/") if ":" not in w]
        numbers = tuple(int(w) for w in words if w.isdigit())
        names = [w for w in words if not w.isdigit()]
        entry["ns"] = entry["real_time"] * TO_NS[entry["time_unit"]]
        entries[names[0], names[1] if len(names) > 1 else "", numbers] = entry
    return raw["context"], entries


def allocation_rows(entries):
    for pattern, about in PATTERNS.items():
        for fit in ("", *FITS):
            per_round = {}
            for blocks in BLOCKS:
                entry = entries.get((pattern, fit, (blocks,)))
                if entry is None:
                    continue
                rounds = blocks if pattern == "allocate_step" else 1
                per_round[blocks] = entry["ns"] / rounds
            if per_round:
                yield {"pattern": about, "placement": FITS.get(fit, ""), "ns": per_round}


def search_rows(entries):
    for (name, policy, numbers), entry in entries.items():
        if name == "choose_once":
            blocks, window = numbers
            yield {"policy": policy, "blocks": blocks, "window_pieces": window, "ns": entry["ns"]}


def request_rows(entries):
    """Search time for a request beside our window's, by how many blocks the other evicts."""
    for (name, policy, numbers), entry in entries.items():
        if name != "serve_requests":
            continue
        bins = sorted(int(key.split("_")[0]) for key in entry if key.endswith("_requests"))
        for least, most in itertools.zip_longest(bins, [b - 1 for b in bins[1:]]):
            prefix = f"{least:02d}_"
            yield {
                "policy": policy,
                "blocks": numbers[0],
                "evicts_at_least": least,
                "evicts_at_most": most,
                "requests": round(entry[prefix + "requests"]),
                "us": entry[prefix + "other_us"],
                "coop_us": entry[prefix + "coop_us"],
                "ratio": entry[prefix + "ratio"],
            }


def recording_rows(entries):
    for (name, _, numbers), entry in entries.items():
        if name == "record_call":
            yield {"living_values": numbers[0], "ns": entry["ns"]}


def simulation_rows(entries):
    """Calls a second: simulated where the budget does not bind, and read."""
    rate = "items_per_second"
    rates = {key: entry[rate] for key, entry in entries.items() if rate in entry}
    for (name, _, numbers), entry in entries.items():
        if name == "simulate_calls" and numbers[1] == 1:
            trace = numbers[0]
            yield {
                "trace": entry["label"],
                "calls": round(entry["calls"]),
                "first_step": rates[name, "", (trace, 1)],
                "ten_steps": rates[name, "", (trace, 10)],
                "read_ours": rates["read_ours", "", (trace,)],
                "read_dtr": rates.get(("read_dtr", "", (trace,))),
            }


def print_simulation(rows):
    columns = {
        "first_step": "first step",
        "ten_steps": "ten steps",
        "read_ours": "read, ours",
        "read_dtr": "read, DTR's",
    }
    print("\nSimulations in which the budget does not bind, and reading; million Calls a second")
    head = "".join(f"{about:>13}" for about in columns.values())
    print(f"  {'trace':<22}{'Calls a step':>13}{head}")
    for row in rows:
        cells = (f"{row[key] / 1e6:>13.2f}" if row[key] else "" for key in columns)
        print(f"  {row['trace']:<22}{row['calls']:>13,}{''.join(cells)}")


def print_recording(rows):
    print("\nA Call with three inputs and one output: begun, block allocated, recorded; one freed")
    cells = (f"{r['ns']:.0f} ns with {r['living_values']:,} Values alive" for r in rows)
    print("  " + ", ".join(cells))


def print_allocation(rows):
    print("Allocation plus free, nothing evicted, in ns; by blocks in the pool")
    head = "".join(f"{blocks:>10,}" for blocks in BLOCKS)
    print(f"  {'pattern':<42}{'placement':<15}{head}")
    for row in rows:
        cells = "".join(f"{row['ns'].get(blocks, float('nan')):>10.0f}" for blocks in BLOCKS)
        print(f"  {row['pattern']:<42}{row['placement']:<15}{cells}")


def print_search(rows):
    print("\nOne call of the search, in us; by pieces in the pool")
    print(f"  {'policy':<8}{'pieces in a window':<22}" + "".join(f"{b:>10,}" for b in BLOCKS))
    for policy, window in dict.fromkeys((r["policy"], r["window_pieces"]) for r in rows):
        cells = ""
        for blocks in BLOCKS:
            found = [
                r["ns"] / 1e3
                for r in rows
                if (r["policy"], r["window_pieces"], r["blocks"]) == (policy, window, blocks)
            ]
            cells += f"{found[0]:>10.1f}" if found else f"{'':>10}"
        about = f"about {window}" if policy == "coop" else "one victim"
        print(f"  {policy:<8}{about:<22}{cells}")


def print_requests(rows):
    print("\nSearch time for a request in a full pool, by what the policy evicts for it, in us")
    print(
        f"  {'policy':<8}{'blocks':>8}{'evicts':>12}{'requests':>10}"
        f"{'policy':>11}{'coop':>9}{'ratio':>9}"
    )
    for r in rows:
        least, most = r["evicts_at_least"], r["evicts_at_most"]
        evicts = f"{least} or more" if most is None else f"{least} to {most}"
        if least == most:
            evicts = str(least)
        print(
            f"  {r['policy']:<8}{r['blocks']:>8,}{evicts:>12}{r['requests']:>10,}"
            f"{r['us']:>11.1f}{r['coop_us']:>9.1f}{r['ratio']:>8.1f}x"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw", help="JSON written by coop-bench-micro --benchmark_out")
    parser.add_argument("--json", metavar="FILE", help="also write the tables as JSON")
    args = parser.parse_args()
    context, entries = read(args.raw)
    tables = {
        "context": context,
        "allocation": list(allocation_rows(entries)),
        "search": list(search_rows(entries)),
        "requests": list(request_rows(entries)),
        "recording": list(recording_rows(entries)),
        "simulation": list(simulation_rows(entries)),
    }
    print_allocation(tables["allocation"])
    print_search(tables["search"])
    print_requests(tables["requests"])
    print_recording(tables["recording"])
    print_simulation(tables["simulation"])
    if args.json:
        path = Path(args.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(tables, indent=2) + "\n")


if __name__ == "__main__":
    main()
