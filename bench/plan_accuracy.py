"""What `coop plan` says that budgets cost networks on the CPU, beside what they do cost.

usage: plan_accuracy.py [--networks a,b] [--ratios .7,.6,.5] [--steps N] [--batches N] [--smoke]
                        [--json FILE]

"more time" is what a budget adds to later steps, predicted and measured. To measure it, plain
PyTorch, coop in an ample budget and coop in every budget train at the same time, each in a process
of its own, and take turns step by step, so that whatever else the machine does meets all of them; a
step's time is what one thread had of the processor. It is compared with the same step in the ample
budget, whose memory is a pool, too: that is what recomputing adds; and with the plain step, whose
memory is the C library's: in a pool's large pages some networks are several percent faster.

Then the operators that are run again in such a step, and the share of time that they take: as
predicted, and as coop counts them there. A budget that makes a program four times slower counts as
one that does not fit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from coop.bench.catalog import NETWORKS
from coop.bench.machine import Machine
from coop.bench.training import Counters, Trainer
from coop.bench.ways import PLAIN, inside

WARM_UP = 6  # steps that are not looked at
COUNTED = ("replays", "replay_ns", "base_ns")
DIFFERENT = "losses or parameters are not plain PyTorch's"
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
AMPLE = 4  # times the peak


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="resnet50,bert-large")
    parser.add_argument("--ratios", default=".7,.6,.5")
    parser.add_argument("--steps", type=int, default=12, help="that are looked at")
    parser.add_argument("--batches", type=int, default=4, help="of coop bench's in one")
    parser.add_argument("--smoke", action="store_true", help="shows that it runs, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    parser.add_argument("--train", metavar="NETWORK", help="only that, for coop plan")
    parser.add_argument(
        "--in-turns", metavar="BYTES", type=int, help="a step for each line of stdin"
    )
    options = parser.parse_args()
    if options.smoke:
        options.networks, options.ratios, options.steps, options.batches = "bilstm", ".7", 2, 1
    options.networks = options.networks.split(",")
    for name in options.networks:
        if name not in NETWORKS:
            parser.error(f"no network {name!r}; there are: {', '.join(NETWORKS)}")
    return options


def predict(name, options):
    """The rows that `coop plan` prints, for the ratios that were asked for."""
    command = [sys.executable, "-m", "coop", "plan", "--json", "--device", "cpu"]
    program = [__file__, "--train", name, "--batches", str(options.batches)]
    done = subprocess.run(
        [*command, "--ratios", options.ratios, *program],
        stdout=subprocess.PIPE,
        text=True,
        env=ONE_THREAD,
    )
    if done.returncode != 0:
        sys.exit(f"{name}: coop plan ended with exit code {done.returncode}")
    plan = json.loads(done.stdout)
    wanted = [float(ratio) for ratio in options.ratios.split(",")]
    return [row for row in plan["rows"] if row["ratio"] in wanted]


def trainer_of(name, batches):
    """Larger than for coop bench: what is no operator is to be little of a step."""
    return Trainer.of(name, Machine("cpu"), batches * NETWORKS[name].cpu.batch)


def train_in_turns(trainer, nbytes):
    """In this process: says of every step what it took, and at the end what has come of them."""
    way = inside(nbytes, "cpu") if nbytes else PLAIN
    with way.scope():
        training = trainer.begin(way)
        for _ in sys.stdin:
            began = time.process_time()
            training.steps(1)
            told = {"took": time.process_time() - began}
            counted = Counters.now().inner if nbytes else {}
            print(json.dumps(told | {key: counted.get(key) for key in COUNTED}), flush=True)
        losses = training.end()
    print(json.dumps([losses, training.state()]))


class Turns:
    """Another process that does so."""

    def __init__(self, name, batches, nbytes=0):
        network = ["--train", name, "--batches", str(batches)]
        command = [sys.executable, __file__, *network, "--in-turns", str(nbytes)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=ONE_THREAD
        )
        self.steps = []
        self.is_over = False

    def step(self):
        if self.is_over:
            return
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        if told:
            self.steps.append(json.loads(told))
        else:
            self._end()

    def _end(self):
        self.is_over = True
        _, error = self._process.communicate()
        if "OutOfMemoryError" not in error:
            sys.exit(f"training failed:\n{error}")

    def result(self):
        return json.loads(self._process.communicate()[0])


def measure(name, rows, options):
    peak = rows[0]["budget_bytes"] / rows[0]["ratio"]
    budgets = [0, int(AMPLE * peak), *(row["budget_bytes"] for row in rows)]
    all_turns = [Turns(name, options.batches, nbytes) for nbytes in budgets]
    for _ in range(WARM_UP + options.steps):
        for turns in all_turns:
            turns.step()
    plain, ample, *others = all_turns
    wanted = plain.result()
    if ample.result() != wanted:
        sys.exit(DIFFERENT)
    return [compare(turns, ample.steps, plain.steps, wanted) for turns in others]


def compare(turns, ample, plain, wanted):
    if turns.is_over:
        return dict.fromkeys(("measured", "over_plain", "counted", "counted_calls"))
    if turns.result() != wanted:
        sys.exit(DIFFERENT)
    before, after = turns.steps[WARM_UP - 1], turns.steps[-1]
    replays, replay_ns, base_ns = (after[key] - before[key] for key in COUNTED)
    return {
        "measured": more_time(turns.steps, ample),
        "over_plain": more_time(turns.steps, plain),
        "counted": replay_ns / base_ns,
        "counted_calls": round(replays / (len(plain) - WARM_UP)),
    }


def more_time(steps, base):
    """In the middle of those that are looked at."""
    pairs = [*zip(steps, base, strict=True)][WARM_UP:]
    return statistics.median(one["took"] / other["took"] for one, other in pairs) - 1


def show(row):
    head = f"{row['network']:12} {row['ratio']:5.0%} {row['budget_bytes'] / 2**20:7.0f} MiB"
    predicted, measured = row["overhead"], row["measured"]
    text = f"{head}  more time: predicted {percent(predicted)}, measured {percent(measured)}"
    if predicted is not None and measured is not None:
        text += f", {100 * (predicted - measured):+5.1f} points"
        text += f", over plain {percent(row['over_plain'])}"
        text += f"  operators {row['recomputed_calls']:4} and {row['counted_calls']:4}"
        text += f"  time {percent(predicted)} and {percent(row['counted'])}"
    print(text, flush=True)


def percent(share):
    return "does not fit" if share is None else f"{share:6.1%}"


def main():
    options = parse()
    if options.in_turns is not None:
        return train_in_turns(trainer_of(options.train, options.batches), options.in_turns)
    if options.train is not None:
        trainer_of(options.train, options.batches).begin().steps(1000)  # coop plan ends it
        return
    table = []
    for name in options.networks:
        rows = predict(name, options)
        for row, measured in zip(rows, measure(name, rows, options), strict=True):
            table.append({"network": name, **row, **measured})
            show(table[-1])
    if options.json:
        Path(options.json).write_text(json.dumps({"plan": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
