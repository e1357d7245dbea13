"""What `coop plan` says that budgets cost networks on the CPU, beside what they do cost.

usage: plan_accuracy.py [--networks a,b] [--ratios .7,.6,.5] [--steps N] [--smoke] [--json FILE]

"more time" is what a budget adds to later steps: as predicted, and as measured against plain steps
in turns (training.py says how), so it has all that else the machine does in it. Then the operators
that are run again in such a step, and the share of time that they take: as predicted, and as coop
counts them there. That share is by what coop knows of operators' costs, which it measures in the
first step, where memory is new and slow; `coop plan` measures them in the second. A budget that
makes a program four times slower counts as one that does not fit.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from networks import NETWORKS, SMALL
from training import Machine, Training, binding, names, numbers

ROOT = Path(__file__).resolve().parents[1]
TOO_SLOW = 4


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=names, default=["resnet50", "transformer"])
    parser.add_argument("--ratios", default=".7,.6,.5")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--smoke", action="store_true", help="shows that it runs, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    parser.add_argument("--train", metavar="NETWORK", help="only that, for coop plan")
    options = parser.parse_args()
    options.all = SMALL if options.smoke else NETWORKS
    if options.smoke:
        options.networks, options.ratios, options.steps = list(SMALL), ".7", 4
    for name in options.networks:
        if name not in options.all:
            parser.error(f"no network {name!r}; there are: {', '.join(options.all)}")
    return options


def predict(name, options):
    """The rows that `coop plan` prints, for the ratios that were asked for."""
    command = [sys.executable, "-m", "coop", "plan", "--json", "--device", "cpu"]
    program = [str(Path(__file__)), "--train", name, *(["--smoke"] if options.smoke else [])]
    done = subprocess.run(
        [*command, "--ratios", options.ratios, *program], stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{name}: coop plan ended with exit code {done.returncode}")
    plan = json.loads(done.stdout)
    wanted = numbers(options.ratios)
    return [row for row in plan["rows"] if row["ratio"] in wanted]


def measure(network, machine, options, plain, nbytes):
    slow = {"max_slowdown": TOO_SLOW}
    found = binding(network, machine, options, plain, nbytes, "coop", **slow)
    if "error" in found:
        return {"measured": None, "counted": None, "counted_calls": None}
    late = options.steps // 2
    each = {name: sum(it[-late:]) for name, it in found["each step but the first"].items()}
    return {
        "measured": found["late"],
        "counted": each["replay_ns"] / each["base_ns"],
        "counted_calls": round(each["replays"] / late),
    }


def show(row):
    head = f"{row['network']:12} {row['ratio']:5.0%} {row['budget_bytes'] / 2**20:7.0f} MiB"
    predicted, measured = row["overhead"], row["measured"]
    text = f"{head}  more time: predicted {percent(predicted)}, measured {percent(measured)}"
    if predicted is not None and measured is not None:
        text += f", {100 * (predicted - measured):+5.1f} points"
        text += f"  operators {row['recomputed_calls']:4} and {row['counted_calls']:4}"
        text += f"  time {percent(predicted)} and {percent(row['counted'])}"
    print(text, flush=True)


def percent(share):
    return "does not fit" if share is None else f"{share:6.1%}"


def main():
    options = parse()
    os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))
    torch.use_deterministic_algorithms(True)
    machine = Machine("cpu")
    if options.train is not None:
        Training(options.all[options.train], machine).steps(1000)  # coop plan ends it
        return
    table = []
    for name in options.networks:
        rows = predict(name, options)
        network = options.all[name]
        plain = Training(network, machine).steps(options.steps)
        for row in rows:
            seen = measure(network, machine, options, plain, row["budget_bytes"])
            table.append({"network": name, **row, **seen})
            show(table[-1])
    if options.json:
        Path(options.json).write_text(json.dumps({"plan": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
