"""What a budget costs networks that train: plain, and in less memory, by policy.

usage: training.py [--device cpu|cuda] [--networks a,b] [--budgets .6,.5] [--policies a,b]
                   [--steps N] [--rounds N] [--deterministic] [--smoke] [--json FILE]

A budget is a share of what the network holds at most when nothing binds. All run in one process and
take turns with plain steps, which the times are compared with: "step 1" is the first, in which
nothing is known; of the second half of the steps it is the middle one's time. "recomputed" is what
was run again in those, on average, against the time of a plain step; "searches" are those in such a
step, with the time that one takes; "fragmentation" is the free share of the pool when they were
served. On a GPU "host" is how long the program took for a step before it waited for the GPU.
coop-online is coop without its forecast of the next step; "checkpoint" is plain PyTorch with
torch.utils.checkpoint around every layer. Where algorithms are deterministic (always on the CPU),
losses and parameters must be plain PyTorch's, bit for bit, or it ends with an error.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import coop
import torch
from coop import _plugin
from gpu_networks import CHECKPOINTED, GPU_NETWORKS
from networks import NETWORKS, SMALL

ROOT = Path(__file__).resolve().parents[1]
WITHOUT_END = "90%"
INNER = ("plans", "planned_calls", "searches", "search_ns", "moved_bytes", "replays")
INNER += ("replay_ns", "base_ns")


@dataclass(frozen=True)
class Machine:
    """What the networks run on."""

    device: str

    @property
    def has_gpu(self):
        return self.device == "cuda"

    def wait(self):
        if self.has_gpu:
            torch.cuda.synchronize()

    def forget(self):
        """What earlier runs have left."""
        gc.collect()
        if self.has_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


class Counters(NamedTuple):
    shown: coop.Stats
    inner: dict[str, int]


class Training:
    """A network that starts from its seed. Two of them make the same steps."""

    def __init__(self, network, machine):
        torch.manual_seed(0)
        self.network = network
        self.machine = machine
        with torch.device(machine.device):
            self.model = network.make()
        self.optimizer = network.optimizer(self.model)
        self.losses = []
        self.kept = None
        self.host = []  # seconds of every step, the GPU not waited for
        self.times = []  # it is

    def step(self):
        self.machine.wait()
        began = time.perf_counter()
        with torch.device(self.machine.device):
            inputs, targets = self.network.batch(len(self.losses))
        self.optimizer.zero_grad()
        loss = self.network.loss(self.model, inputs, targets)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach().clone())
        self.host.append(time.perf_counter() - began)
        self.machine.wait()
        self.times.append(time.perf_counter() - began)

    def steps(self, count):
        for _ in range(count):
            self.step()
        return self

    def state(self):
        return self.kept or [*self.losses, *self.model.state_dict().values()]

    def keep_on_host(self):
        """It has ended: what is left takes no memory on the device."""
        self.kept = [it.detach().cpu() for it in self.state()]
        del self.model, self.optimizer, self.losses


def must_be_equal(one, other, what):
    if not torch.are_deterministic_algorithms_enabled():
        return
    pairs = zip(one.state(), other.state(), strict=True)
    if not all(torch.equal(a.cpu(), b.cpu()) for a, b in pairs):
        sys.exit(f"{what}: losses or parameters are not plain PyTorch's")


def run_inside(network, machine, steps, budget, policy, **more):
    """The training, and the counters after each step."""
    machine.forget()
    counters = []
    with coop.budget(budget, policy=policy, device=machine.device, **more):
        training = Training(network, machine)
        for _ in range(steps):
            training.step()
            counters.append(Counters(coop.stats(), _plugin.stats()))
    return training, counters


def later(rounds):
    """The middle of the second halves."""
    return statistics.median([it for times in rounds for it in times[len(times) // 2 :]])


def plain_step(network, machine):
    """The time of one, the middle of a few after the first three."""
    machine.forget()
    return later([Training(network, machine).steps(6).times])


def not_binding(network, machine, options, what):
    """Plain and unbound in turns: whatever else the machine does meets both alike."""
    plain_times, free_times, host_times = [], [], []
    for _ in range(options.rounds):
        plain = training = None
        machine.forget()
        plain = Training(network, machine).steps(options.steps)
        plain_times.append(plain.times)
        peak = torch.cuda.max_memory_allocated() if machine.has_gpu else 0
        training, counters = run_inside(network, machine, options.steps, WITHOUT_END, "coop")
        must_be_equal(training, plain, what)
        free_times.append(training.times)
        host_times.append(training.host)
        plain.keep_on_host()  # a later budget counts what is left of an earlier one
    row = {
        "bytes": peak or counters[-1].shown.peak_bytes,
        "policy": "coop",
        "plain": later(plain_times),
        "late": later(free_times) / later(plain_times) - 1,
        "host": later(host_times),
    }
    return plain, row


def binding(network, machine, options, plain, nbytes, policy, **more):
    base = plain_step(network, machine)
    try:
        training, counters = run_inside(network, machine, options.steps, nbytes, policy, **more)
    except torch.OutOfMemoryError as error:
        return {"error": str(error).splitlines()[0]}
    must_be_equal(training, plain, f"{nbytes} bytes by {policy}")
    times, host = training.times, training.host
    del training
    base = (base + plain_step(network, machine)) / 2  # before and after
    late = options.steps - options.steps // 2
    before, after, count = counters[late - 1], counters[-1], options.steps - late
    recomputed = (after.shown.recomputing_ns - before.shown.recomputing_ns) / count
    inner = {
        name: [now.inner[name] - earlier.inner[name] for earlier, now in pairwise(counters)]
        for name in INNER
    }
    searches = after.inner["searches"] - before.inner["searches"]
    search_ns = after.inner["search_ns"] - before.inner["search_ns"]
    free_shares = [it.shown.fragmentation * it.inner["searches"] for it in (before, after)]
    return {
        "plain": base,
        "first": times[0] / plain.times[0] - 1,
        "late": statistics.median(times[late:]) / base - 1,
        "host": statistics.median(host[late:]),
        "recomputed": recomputed / (1e9 * base),
        "evictions": (after.shown.evictions - before.shown.evictions) // count,
        "searches": searches / count,
        "search_us": search_ns / 1e3 / max(searches, 1),
        "fragmentation": (free_shares[1] - free_shares[0]) / max(searches, 1),
        "times": times,
        "each step but the first": inner,
    }


def checkpointed(network, machine, options):
    """The peak and the times of a network that somebody has checkpointed by hand."""
    machine.forget()
    training = Training(network, machine).steps(options.steps)
    return torch.cuda.max_memory_allocated(), later([training.times]), later([training.host])


def measure(name, network, machine, options):
    """One dictionary for each budget and policy."""
    plain, free = not_binding(network, machine, options, name)
    peak = free["bytes"]
    yield {"network": name, "budget": None, **free}
    for share in options.budgets:
        for policy in options.policies:
            row = {"network": name, "budget": share, "bytes": int(share * peak), "policy": policy}
            yield {**row, **binding(network, machine, options, plain, row["bytes"], policy)}
    if machine.has_gpu and name in CHECKPOINTED:
        base = plain_step(network, machine)
        nbytes, late, host = checkpointed(CHECKPOINTED[name], machine, options)
        row = {"network": name, "budget": nbytes / peak, "bytes": nbytes}
        times = {"plain": base, "late": late / base - 1, "host": host}
        yield {**row, "policy": "checkpoint", **times}
        yield {
            **row,
            "policy": "coop",
            **binding(network, machine, options, plain, nbytes, "coop"),
        }


def show(row):
    budget = f"{row['budget']:.0%}" if row["budget"] else "not binding"
    text = f"{row['network']:12} {budget:>11} {row['bytes'] / 2**20:8.0f} MiB  {row['policy']:12}"
    if "error" in row:
        print(text, "does not fit", flush=True)
        return
    text += f" step 1 {row['first']:+7.1%}" if "first" in row else " " * 15
    text += f"  later {row['late']:+7.1%}"
    if torch.cuda.is_available():
        text += f"  host {1e3 * row['host']:6.1f} of {1e3 * row['plain']:6.1f} ms"
    if "recomputed" in row:
        text += f"  recomputed {row['recomputed']:6.1%}  evictions {row['evictions']:5}"
        text += f"  searches {row['searches']:4.0f}"
        if row["searches"]:
            text += f" of {row['search_us']:.0f} us  fragmentation {row['fragmentation']:.1%}"
    print(text, flush=True)


def numbers(text):
    return [float(each) for each in text.split(",") if each]


def names(text):
    return text.split(",")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    on_both = f"{', '.join(NETWORKS)}; on a GPU {', '.join(GPU_NETWORKS)}"
    parser.add_argument("--networks", type=names, help=on_both)
    parser.add_argument("--budgets", type=numbers, default=[0.6, 0.5])
    parser.add_argument("--policies", type=names, default=["coop", "coop-online", "dtr", "dte"])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="of what does not bind")
    parser.add_argument("--deterministic", action="store_true", help="on a GPU; a CPU always is")
    parser.add_argument("--smoke", action="store_true", help="shows that it runs, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here")
    networks = GPU_NETWORKS if options.device == "cuda" else NETWORKS
    options.networks = options.networks or list(networks)
    if options.smoke:
        networks = SMALL
        options.steps, options.budgets, options.rounds = 2, [0.6], 1
        options.networks = [name for name in options.networks if name in SMALL]
    for name in options.networks:
        if name not in networks:
            parser.error(f"no network {name!r}; there are: {', '.join(networks)}")
    options.networks = {name: networks[name] for name in options.networks}
    return options


def main():
    options = parse()
    os.environ.setdefault("COOP_PLUGIN", str(ROOT / "build/release/src/libcoop_plugin.so"))
    if options.device == "cpu" or options.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("high")  # TF32, as people train
    torch.backends.cudnn.allow_tf32 = True
    machine = Machine(options.device)
    table = []
    for name, network in options.networks.items():
        for row in measure(name, network, machine, options):
            table.append(row)
            show(row)
    if options.json:
        Path(options.json).write_text(json.dumps({"training": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
