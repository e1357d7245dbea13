"""Where our `dtr` and the DTR prototype's simulator differ, and for which of its rules.

usage: compare_with_dtr.py [LOG...] [--ratios .5,.3] [--ours RULES]... [--coop-sim PROGRAM]

Runs a model of the prototype on its logs, as it is and with rules of our engine instead of its own:
one at a time, then those that matter together, then all. Prints total time over the time without a
budget. With --coop-sim also what our engine itself gives. Without LOG: the logs in the folder that
COOP_DTR_LOGS names, by default ../shared/traces/dtr. docs/peers.md says what was found.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from dtr_prototype.log import peak_of, read_log
from dtr_prototype.simulator import PROTOTYPE, RULES, total_time

LOGS = Path(__file__).resolve().parents[1] / "../shared/traces/dtr"
MOST_SLOWDOWN = 6  # what takes longer is called out of memory


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="*", type=Path, metavar="LOG")
    parser.add_argument("--ratios", default=".9,.8,.7,.6,.5,.4,.3,.2", help="budget / peak")
    parser.add_argument(
        "--ours",
        action="append",
        metavar="RULES",
        help=f"one row with our rules for these, with commas between: all, {', '.join(RULES)}",
    )
    parser.add_argument("--coop-sim", type=Path, metavar="PROGRAM")
    arguments = parser.parse_args()
    if not arguments.logs:
        folder = Path(os.environ.get("COOP_DTR_LOGS", LOGS))
        arguments.logs = sorted(folder.glob("*.log*"))
        if not arguments.logs:
            sys.exit(f"no logs in {folder}; COOP_DTR_LOGS names their folder")
    arguments.ratios = [float(ratio) for ratio in arguments.ratios.split(",")]
    unknown = {rule for row in arguments.ours or () for rule in row.split(",")} - {*RULES, "all"}
    if unknown:
        parser.error(f"there is no rule {unknown.pop()}; there are {', '.join(RULES)}")
    return arguments


def exchanged(rules):
    """The prototype's rules but for these, which are ours."""
    names = RULES if rules == "all" else rules.split(",")
    return replace(PROTOTYPE, **dict.fromkeys(names, False))


def time_with_coop_sim(program, log, ratio):
    world = ("--format", "dtr", "--policy", "dtr", "--no-fragmentation", "--ratio", str(ratio))
    done = subprocess.run(
        [program, "run", log, *world, "--json"], check=True, text=True, capture_output=True
    )
    result = json.loads(done.stdout)
    return 1 + result["overhead"] if result["status"] == "ok" else math.inf


def print_row(label, times):
    cells = (f"{time:7.3f}" if math.isfinite(time) else "    OOM" for time in times)
    print(f"  {label:<36}", *cells, flush=True)


def main():
    arguments = parse_arguments()
    rows = arguments.ours or [*RULES, "dead_stay,used_when_asked", "all"]
    for log in arguments.logs:
        events = read_log(log)
        peak = peak_of(events)
        budgets = [int(peak * ratio) for ratio in arguments.ratios]

        def times_with(rules, events=events, budgets=budgets):
            return [total_time(events, budget, rules, MOST_SLOWDOWN) for budget in budgets]

        print(f"{log.name}: peak {peak / 1e6:.1f} MB")
        print(f"  {'budget / peak':<36}", *(f"{ratio:7.1f}" for ratio in arguments.ratios))
        print_row("the prototype", times_with(PROTOTYPE))
        for rules in rows:
            print_row(f"ours: {rules}", times_with(exchanged(rules)))
        if arguments.coop_sim:
            program = arguments.coop_sim
            times = [time_with_coop_sim(program, log, ratio) for ratio in arguments.ratios]
            print_row("coop-sim", times)


if __name__ == "__main__":
    main()
