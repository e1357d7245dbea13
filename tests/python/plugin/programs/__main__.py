"""How much of what each program's operators make is evicted under stress, and why the rest is not.

python -m programs [name...] [--json FILE]
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import torch
from coop import _plugin

from . import PROGRAMS, run


def made_by(name: str) -> dict[str, int]:
    """Bytes: evicted at least once, and what never was, by why."""
    outcome = run(PROGRAMS[name], 1, _plugin.budget(1 << 28, stress=True, small_limit=0))
    made = torch.ops.coop.made_bytes()  # of the last budget
    evicted = outcome.stats["evicted_once_bytes"]
    rest = {why: nbytes for why, nbytes in made.items() if nbytes > 0 and why != "none"}
    return {"made": sum(made.values()), "evicted": evicted, **rest}


def line(name: str, made: dict[str, int]) -> str:
    total = max(made["made"], 1)
    rest = sorted(((n, why) for why, n in made.items() if why not in ("made", "evicted")))
    reasons = ", ".join(f"{why} {n / total:.1%}" for n, why in reversed(rest[-3:]))
    return f"{name:36} {made['evicted'] / total:6.1%} of {total / 2**20:7.1f} MiB; not: {reasons}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of programs; all of them if there is none")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    options = parser.parse_args()
    for name in options.names:
        if name not in PROGRAMS:
            parser.error(f"no program {name!r}; there are: {', '.join(PROGRAMS)}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    table = {}
    for name in options.names or PROGRAMS:
        if reason := PROGRAMS[name].skip():
            print(f"{name:36} skipped: {reason}")
            continue
        table[name] = made_by(name)
        print(line(name, table[name]), flush=True)
    print(line("all", dict(sum(map(Counter, table.values()), Counter()))))
    if options.json:
        Path(options.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
