"""Runs operators plain and inside a budget, and says what differs and what was evicted."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from op_db.cases import DTYPES, VARIANTS, Selection, operators
from op_db.runs import KINDS
from op_db.table import print_table
from op_db.workers import Task, Workers


def supported() -> dict[str, list[str]]:
    return {
        name: [it for it, dtype in DTYPES.items() if dtype in op.dtypes]
        for name, op in operators().items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m op_db", description=__doc__)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--dtype", nargs="*", default=["float32"], choices=DTYPES)
    parser.add_argument("--kind", choices=KINDS, default="stress")
    parser.add_argument("--most", type=int, help="samples of each, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, help="only this one")
    parser.add_argument("--variant", choices=VARIANTS, help="only this one")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true", help="operators and types, as JSON")
    options = parser.parse_args()
    if options.list:
        print(json.dumps(supported()))
        return
    names = options.operators or list(operators())
    unknown = [name for name in names if name not in operators()]
    if unknown:
        parser.error(f"no such operator: {', '.join(unknown)}")
    selection = Selection(options.most, options.seed, options.sample, options.variant)
    tasks = [Task(name, it, options.kind, selection) for it in options.dtype for name in names]
    workers = Workers()
    workers.submit(tasks)
    began = time.monotonic()
    table = {}
    for task in tasks:
        report = workers.report(task)
        table[f"{task.op} {task.dtype}"] = asdict(report)
        for line in sorted(set(report.differing)):
            print(line, flush=True)
    workers.close()
    print_table({name: row["made"] for name, row in table.items()})
    cases = sum(row["cases"] for row in table.values())
    print(f"{cases} cases, {time.monotonic() - began:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
