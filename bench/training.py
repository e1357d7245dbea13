"""What a budget costs networks that train on the CPU: plain, and in less memory, by policy.

usage: training.py [--networks a,b] [--budgets .6,.5] [--policies a,b] [--steps N] [--rounds N]
                   [--smoke] [--json FILE]

A budget is a share of what the network holds at most when the budget does not bind. All run in one
process and take turns with plain steps, which the times are compared with: "step 1" is the first,
in which nothing is known; of the second half of the steps it is the middle one's time. "recomputed"
is what was run again in those, on average, against the time of a plain step.
coop-online is coop without its forecast of the next step. Losses and parameters must be plain
PyTorch's, bit for bit, or it ends with an error.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path

import coop
import torch
from networks import NETWORKS, SMALL
from torch.nn import functional

ROOT = Path(__file__).resolve().parents[1]
WITHOUT_END = "90%"


class Training:
    """A network that starts from its seed. Two of them make the same steps."""

    def __init__(self, network):
        torch.manual_seed(0)
        self.model = network.make()
        self.batch = network.batch
        self.optimizer = network.optimizer(self.model)
        self.losses = []

    def step(self):
        began = time.perf_counter()
        inputs, targets = self.batch(len(self.losses))
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach().clone())
        return time.perf_counter() - began

    def state(self):
        return [*self.losses, *self.model.state_dict().values()]


def must_be_equal(one, other, what):
    pairs = zip(one.state(), other.state(), strict=True)
    if not all(torch.equal(a, b) for a, b in pairs):
        sys.exit(f"{what}: losses or parameters are not plain PyTorch's")


def run_inside(network, steps, budget, policy):
    """The training, the times of its steps, and the counters after each."""
    gc.collect()
    times, counters = [], []
    with coop.budget(budget, policy=policy):
        training = Training(network)
        for _ in range(steps):
            times.append(training.step())
            counters.append(coop.stats())
    return training, times, counters


def later(rounds):
    """The middle of all steps but the first of each round."""
    return statistics.median([it for times in rounds for it in times[1:]])


def plain_step(network):
    """The time of one, the middle of a few after the first."""
    beside = Training(network)
    return statistics.median([beside.step() for _ in range(5)][1:])


def measure(name, network, options):
    """One dictionary for each budget and policy."""
    # Plain and unbound in turns: whatever else the machine does meets both alike.
    plain_times, free_times = [], []
    for _ in range(options.rounds):
        plain = Training(network)
        plain_times.append([plain.step() for _ in range(options.steps)])
        training, times, counters = run_inside(network, options.steps, WITHOUT_END, "coop")
        must_be_equal(training, plain, name)
        free_times.append(times)
        del training  # a later budget counts what is left of an earlier one
    peak = counters[-1].peak_bytes
    yield {
        "network": name,
        "budget": None,
        "bytes": peak,
        "policy": "coop",
        "late": later(free_times) / later(plain_times) - 1,
    }

    for share in options.budgets:
        for policy in options.policies:
            base = plain_step(network)
            row = {"network": name, "budget": share, "bytes": int(share * peak), "policy": policy}
            try:
                training, times, counters = run_inside(network, options.steps, row["bytes"], policy)
            except torch.OutOfMemoryError as error:
                yield {**row, "error": str(error).splitlines()[0]}
                continue
            must_be_equal(training, plain, f"{name}, {share} by {policy}")
            del training
            base = (base + plain_step(network)) / 2  # before and after
            late = options.steps - options.steps // 2
            before, after, count = counters[late - 1], counters[-1], options.steps - late
            recomputed = (after.recomputing_ns - before.recomputing_ns) / count
            yield {
                **row,
                "first": times[0] / plain_times[0][0] - 1,
                "late": statistics.median(times[late:]) / base - 1,
                "recomputed": recomputed / (1e9 * base),
                "evictions": (after.evictions - before.evictions) // count,
                "fragmentation": after.fragmentation,
            }


def show(row):
    budget = "not binding" if row["budget"] is None else f"{row['budget']:.0%}"
    text = f"{row['network']:12} {budget:>11} {row['bytes'] / 2**20:8.0f} MiB  {row['policy']:12}"
    if "error" in row:
        print(text, "does not fit", flush=True)
        return
    if "first" in row:
        text += f" step 1 {row['first']:+7.1%}"
    else:
        text += " " * 15
    text += f"  later {row['late']:+7.1%}"
    if "recomputed" in row:
        text += f"  recomputed {row['recomputed']:6.1%}  evictions {row['evictions']:5}"
    print(text, flush=True)


def numbers(text):
    return [float(each) for each in text.split(",")]


def names(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=names, default=list(NETWORKS), help=", ".join(NETWORKS))
    parser.add_argument("--budgets", type=numbers, default=[0.6, 0.5])
    parser.add_argument("--policies", type=names, default=["coop", "coop-online", "dtr", "dte"])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="of what does not bind")
    parser.add_argument("--smoke", action="store_true", help="shows that it runs, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    options = parser.parse_args()
    networks = NETWORKS
    if options.smoke:
        networks = SMALL
        options.steps, options.budgets, options.rounds = 2, [0.6], 1
        options.networks = [name for name in options.networks if name in SMALL]
    for name in options.networks:
        if name not in networks:
            parser.error(f"no network {name!r}; there are: {', '.join(networks)}")

    os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))
    torch.use_deterministic_algorithms(True)
    table = []
    for name in options.networks:
        for row in measure(name, networks[name], options):
            table.append(row)
            show(row)
    if options.json:
        Path(options.json).write_text(json.dumps({"training": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
