"""What `coop plan` says that budgets cost networks on the CPU, beside what they do cost.

usage: plan_accuracy.py [--networks a,b:8] [--ratios .7,.6,.5] [--steps N] [--sittings N]
                        [--smoke] [--json FILE]

A network is one of coop bench's for a CPU; a:8 has a batch eight times as large, and tensors of up
to tens of megabytes. Those of the small batches fit into a processor's cache, and the fewer of them
there are the better: operators are a little faster in a small budget, which no simulator knows.

"more time" is what a budget adds to later steps, predicted and measured. To measure it, plain
PyTorch, coop in an ample budget and coop in every budget train at the same time, each in a process
of its own, and take turns step by step, so that whatever else the machine does meets all of them; a
step's time is what one thread had of the processor. It is compared with the same step in the ample
budget, whose memory is a pool, too: that is what recomputing adds; and with the plain step, whose
memory is the C library's: in a pool's large pages some networks are several percent faster.

Then the operators that are run again in such a step, and their share of the time of all
operators: as predicted, and as coop counts them there. A budget that makes a program four times
slower counts as one that does not fit.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from coop.bench.catalog import NETWORKS
from coop.bench.comparing import are_equal
from coop.bench.machine import Machine
from coop.bench.measuring import over
from coop.bench.process import one_thread
from coop.bench.training import Trainer
from coop.bench.turns import Partner, take_turns
from coop.bench.ways import PLAIN, inside

WARM_UP = 6  # steps that are not looked at
COUNTED = ("replays", "replay_ns", "base_ns")
TOO_SMALL = ("does not fit", "too slow")
AMPLE = 4  # times the peak


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="resnet50:8,bert-large:8")
    parser.add_argument("--ratios", default=".7,.6,.5")
    parser.add_argument("--steps", type=int, default=8, help="that are looked at")
    parser.add_argument("--sittings", type=int, default=1, help="of which the middle is shown, too")
    parser.add_argument("--smoke", action="store_true", help="shows that it runs, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    parser.add_argument("--train", metavar="NETWORK", help="only that, for coop plan")
    options = parser.parse_args()
    if options.smoke:
        options.networks, options.ratios, options.steps = "bilstm", ".7", 2
    try:
        options.networks = [Network.named(word) for word in options.networks.split(",")]
        options.train = options.train and Network.named(options.train)
    except ValueError as error:
        parser.error(str(error))
    return options


@dataclass(frozen=True)
class Network:
    """One of coop bench's, with some of its batches in one."""

    name: str
    batches: int

    @classmethod
    def named(cls, word: str) -> "Network":
        name, _, batches = word.partition(":")
        there = [it for it, network in NETWORKS.items() if network.cpu is not None]
        if name not in there:
            raise ValueError(f"no network {name!r}; there are: {', '.join(there)}")
        if not (batches or "1").isdecimal():
            raise ValueError(f"{word}: how many batches?")
        return cls(name, int(batches or 1))

    @property
    def batch(self) -> int:
        return self.batches * NETWORKS[self.name].cpu.batch

    def __str__(self) -> str:
        return f"{self.name}:{self.batches}" if self.batches > 1 else self.name


def predict(network, options):
    """The rows that `coop plan` prints, for the ratios that were asked for."""
    command = [sys.executable, "-m", "coop", "plan", "--json", "--device", "cpu"]
    program = [__file__, "--train", str(network)]
    done = subprocess.run(
        [*command, "--ratios", options.ratios, *program],
        stdout=subprocess.PIPE,
        text=True,
        env=one_thread(),
    )
    if done.returncode != 0:
        sys.exit(f"{network}: coop plan ended with exit code {done.returncode}")
    plan = json.loads(done.stdout)
    wanted = [float(ratio) for ratio in options.ratios.split(",")]
    return [row for row in plan["rows"] if row["ratio"] in wanted]


def sit(network, options):
    """A plan, and what becomes of it. Of two processes that do the same one may be some percent
    slower all the time, for where its memory came to lie."""
    table = []
    rows = predict(network, options)
    for row, measured in zip(rows, measure(network, rows, options), strict=True):
        table.append({"network": str(network), **row, **measured})
        show(table[-1])
    return table


def middle(rows):
    """Each figure by itself; one that is missing in some is missing."""
    numbers = {key for key, value in rows[0].items() if isinstance(value, (int, float))}
    figures = {key: [row[key] for row in rows] for key in numbers}
    middles = {
        key: None if None in values else statistics.median(values)
        for key, values in figures.items()
    }
    return {**rows[0], **middles}


def measure(network, rows, options):
    peak = rows[0]["budget_bytes"] / rows[0]["ratio"]
    budgets = [int(AMPLE * peak), *(row["budget_bytes"] for row in rows)]
    ways = [PLAIN, *(inside(nbytes, "cpu") for nbytes in budgets)]
    with ExitStack() as stack:
        partners = [
            Partner(network.name, way, WARM_UP, options.steps, network.batch) for way in ways
        ]
        for partner in partners:
            stack.enter_context(partner)
        plain, ample, *others = partners
        take_turns(plain, [ample, *others])
        base = checked(ample.run(), plain.run())
        return [compare(partner, base, plain.run()) for partner in others]


def compare(partner, ample, plain):
    if partner.lost is not None:
        if partner.lost.outcome["status"] not in TOO_SMALL:
            sys.exit(f"training failed: {partner.lost}")
        return dict.fromkeys(("measured", "over_plain", "counted", "counted_calls"))
    run = checked(partner.run(), plain)
    replays, replay_ns, base_ns = (run.after.inner[it] - run.before.inner[it] for it in COUNTED)
    return {
        "measured": over(ample, run) - 1,
        "over_plain": over(plain, run) - 1,
        "counted": replay_ns / base_ns,
        "counted_calls": round(replays / (len(run.times) - WARM_UP)),
    }


def checked(run, plain):
    if not are_equal(run, plain):
        sys.exit("losses or parameters are not plain PyTorch's")
    return run


def show(row):
    head = f"{row['network']:13} {row['ratio']:5.0%} {row['budget_bytes'] / 2**20:7.0f} MiB"
    predicted, measured = row["overhead"], row["measured"]
    text = f"{head}  more time: predicted {percent(predicted)}, measured {percent(measured)}"
    if predicted is not None and measured is not None:
        text += f", {100 * (predicted - measured):+5.1f} points"
        text += f", over plain {percent(row['over_plain'])}"
        text += f"  operators {row['recomputed_calls']:4} and {row['counted_calls']:4}"
        text += f"  time {percent(row['recomputing'])} and {percent(row['counted'])}"
    print(text, flush=True)


def percent(share):
    return "does not fit" if share is None else f"{share:6.1%}"


def main():
    options = parse()
    if options.train is not None:
        trainer = Trainer.of(options.train.name, Machine("cpu"), options.train.batch)
        trainer.begin().steps(1000)  # coop plan ends it
        return
    table = []
    for network in options.networks:
        sittings = [sit(network, options) for _ in range(options.sittings)]
        table += itertools.chain(*sittings)
        if options.sittings > 1:
            print(f"the middle of {options.sittings} sittings")
            for rows in zip(*sittings, strict=True):
                show(middle(rows))
    if options.json:
        Path(options.json).write_text(json.dumps({"plan": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
