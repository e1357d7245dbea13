"""What `coop plan` says that budgets cost networks on the CPU, beside what they do cost.

usage: plan_accuracy.py [--networks a,b] [--ratios .7,.6,.5] [--steps N] [--smoke] [--json FILE]

"more time" is what a budget adds to later steps: as predicted, and as measured against plain steps
in turns (`coop bench` says how), so it has all that else the machine does in it. Then the operators
that are run again in such a step, and the share of time that they take: as predicted, and as coop
counts them there. That share is by what coop knows of operators' costs, which it measures in the
first step, where memory is new and slow; `coop plan` measures them in the second. A budget that
makes a program four times slower counts as one that does not fit.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from coop.bench.catalog import NETWORKS
from coop.bench.machine import Machine
from coop.bench.measuring import Bench, Steps
from coop.bench.training import Trainer
from coop.bench.ways import inside

WARM_UP = 6  # steps that are not looked at


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="resnet50,bert-large")
    parser.add_argument("--ratios", default=".7,.6,.5")
    parser.add_argument("--steps", type=int, default=10, help="that are looked at")
    parser.add_argument("--smoke", action="store_true", help="shows that it runs, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    parser.add_argument("--train", metavar="NETWORK", help="only that, for coop plan")
    options = parser.parse_args()
    if options.smoke:
        options.networks, options.ratios, options.steps = "bilstm", ".7", 2
    options.networks = options.networks.split(",")
    for name in options.networks:
        if name not in NETWORKS:
            parser.error(f"no network {name!r}; there are: {', '.join(NETWORKS)}")
    return options


def predict(name, options):
    """The rows that `coop plan` prints, for the ratios that were asked for."""
    command = [sys.executable, "-m", "coop", "plan", "--json", "--device", "cpu"]
    program = [str(Path(__file__)), "--train", name]
    done = subprocess.run(
        [*command, "--ratios", options.ratios, *program], stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{name}: coop plan ended with exit code {done.returncode}")
    plan = json.loads(done.stdout)
    wanted = [float(ratio) for ratio in options.ratios.split(",")]
    return [row for row in plan["rows"] if row["ratio"] in wanted]


def measure(bench, nbytes):
    try:
        found = bench.policy(inside(nbytes, "cpu"), nbytes)
    except torch.OutOfMemoryError:
        return {"measured": None, "counted": None, "counted_calls": None}
    if found["losses"] == "different":
        sys.exit(f"{nbytes} bytes: losses or parameters are not plain PyTorch's")
    return {
        "measured": found["overhead"],
        "counted": found["recomputed_of_operators"],
        "counted_calls": round(found["recomputations"]),
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
    machine = Machine("cpu")
    if options.train is not None:
        Trainer.of(options.train, machine).begin().steps(1000)  # coop plan ends it
        return
    table = []
    for name in options.networks:
        rows = predict(name, options)
        bench = Bench(Trainer.of(name, machine), Steps(WARM_UP, options.steps))
        bench.begin()
        for row in rows:
            table.append({"network": name, **row, **measure(bench, row["budget_bytes"])})
            show(table[-1])
    if options.json:
        Path(options.json).write_text(json.dumps({"plan": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
