"""What coop costs while the budget does not bind: tiny operators on the CPU, plain against coop.

usage: plugin_cost.py [--smoke] [--json FILE]

Both run in one process, in rounds that take turns, so that whatever else the machine does meets
both alike; the time is the processor's, so that it counts little. A row's figures are medians over
the rounds; "more" is the median of the differences within a round. "passing" is the same loop on a
thread that has our dispatch key while there is no budget: what it costs that operators come by.
"""

import argparse
import gc
import json
import os
import statistics
import threading
import time
from pathlib import Path

import torch
from coop import _plugin
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parents[1]
BUDGET = 1 << 30  # nothing here comes near it
MOST_MORE_US = 2.0


class Counting(TorchDispatchMode):
    """Counts operators where coop sees them: below autograd."""

    def __init__(self):
        super().__init__()
        self.operators = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators += 1
        return func(*args, **(kwargs or {}))


def binary(function, elements=16, **options):
    def make():
        a, b = torch.ones(elements, **options), torch.ones(elements)
        return lambda: function(a, b)

    return make


def unary(function, **options):
    def make():
        a = torch.ones(16, **options)
        return lambda: function(a)

    return make


def in_place():
    a, b = torch.ones(16), torch.ones(16)
    return lambda: a.add_(b)


def chain():
    """What is made is read again, and dies at once."""
    a = torch.ones(16)
    return lambda: torch.relu(torch.mul(torch.add(a, a), a))


def training(optimizer):
    def make():
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        steps = optimizer(model.parameters())
        x = torch.randn(4, 16)

        def step():
            steps.zero_grad()
            model(x).sum().backward()
            steps.step()

        return step

    return make


LOOPS = {
    "add": binary(torch.add),
    "mul": binary(torch.mul),
    "relu": unary(torch.relu),
    "add, requires_grad": binary(torch.add, requires_grad=True),
    "mul, requires_grad": binary(torch.mul, requires_grad=True),
    "relu, requires_grad": unary(torch.relu, requires_grad=True),
    "add_": in_place,
    "relu(mul(add))": chain,
    "add, 20,000 elements": binary(torch.add, elements=20_000),
    "training, SGD": training(lambda it: torch.optim.SGD(it, lr=1e-3, momentum=0.9, foreach=True)),
    "training, Adam": training(lambda it: torch.optim.Adam(it, lr=1e-3, foreach=True)),
}


def seconds(step, repetitions):
    began = time.thread_time()
    for _ in range(repetitions):
        step()
    return time.thread_time() - began


def on_thread(work):
    """What it returns, on a thread that has our key."""
    results = []

    def run():
        torch.set_num_threads(1)
        torch.ops.coop.enter_thread()
        results.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


def measure(make, operators_per_round, rounds):
    step = make()
    with Counting() as counting:
        step()
    repetitions = max(1, operators_per_round // counting.operators)
    operators = repetitions * counting.operators

    def plain():
        step = make()
        seconds(step, repetitions // 4 + 1)  # as in the long run
        return seconds(step, repetitions)

    def coop():
        with _plugin.budget(BUDGET):
            return plain()  # what it keeps is made inside as well, and lies in the pool

    runs = {"plain": plain, "passing": lambda: on_thread(plain), "coop": coop}
    for run in runs.values():
        run()
    times = {name: [] for name in runs}
    gc.disable()
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(run() / operators * 1e6)
        gc.collect()
    gc.enable()
    row = {f"{name}_us": statistics.median(values) for name, values in times.items()}
    for name in ("passing", "coop"):
        pairs = zip(times[name], times["plain"], strict=True)
        row[f"{name}_more_us"] = statistics.median(a - b for a, b in pairs)
    row["ratio"] = row["coop_us"] / row["plain_us"]
    row["operators"] = counting.operators
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="shows that it runs, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    parser.add_argument("--only", help="loops whose names contain this")
    options = parser.parse_args()

    os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))
    torch.set_num_threads(1)
    _plugin.load()
    with _plugin.budget(BUDGET):  # from now on its allocator is in place, also where it only passes
        pass
    rows = {}
    print("coop while the budget does not bind: µs per operator (one thread)")
    print(f"{'':22}{'operators':>10}{'plain':>8}{'passing':>9}{'coop':>8}{'more':>8}{'ratio':>7}")
    for name, make in LOOPS.items():
        if options.only and options.only not in name:
            continue
        row = measure(make, *((20, 1) if options.smoke else (10_000, 15)))
        rows[name] = row
        print(
            f"{name:22}{row['operators']:10}{row['plain_us']:8.2f}{row['passing_us']:9.2f}"
            f"{row['coop_us']:8.2f}{row['coop_more_us']:8.2f}{row['ratio']:7.2f}",
            flush=True,
        )
    worst = max(row["coop_more_us"] for row in rows.values())
    print(f"the most that an operator costs more: {worst:.2f} µs (wanted: {MOST_MORE_US})")
    if options.json:
        Path(options.json).write_text(json.dumps({"plugin_cost": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
