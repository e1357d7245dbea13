"""Where the time goes in less memory, on a GPU: one network, plain and inside a budget.

usage: gpu_profile.py [--networks a,b] [--budget .5] [--steps N] [--json FILE]

After N steps two more are looked at with PyTorch's profiler. "kernels" and "copies" are what the
GPU did in one of them, "idle" what it waited between; "recomputed" is what coop counts, "searches"
the time for them, all in milliseconds. What kernels take beyond plain is recomputation; what idle
takes is the host, which was not ahead.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import torch
from coop import _plugin
from coop.bench.machine import Machine
from coop.bench.training import Trainer
from coop.bench.ways import PLAIN, inside
from torch.profiler import ProfilerActivity, profile

LOOKED_AT = 2
COLUMNS = ("step", "host", "kernels", "copies", "idle", "recomputed", "searches")


def on_gpu(trace):
    """The times of what ran there, in milliseconds, and of what lay between."""
    kinds = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "copies"}
    events = [it for it in trace["traceEvents"] if it.get("cat") in kinds]
    events.sort(key=lambda it: it["ts"])
    took = {"kernels": 0.0, "copies": 0.0, "idle": 0.0}
    end = events[0]["ts"]
    for it in events:
        took[kinds[it["cat"]]] += it["dur"] / 1e3 / LOOKED_AT
        took["idle"] += max(it["ts"] - end, 0) / 1e3 / LOOKED_AT
        end = max(end, it["ts"] + it["dur"])
    return took


def look(name, steps, budget=None):
    machine = Machine("cuda")
    machine.forget()
    way = inside(budget, "cuda") if budget else PLAIN
    with way.scope():
        training = Trainer.of(name, machine).begin(way).steps(steps).steps_alone(1)
        before = _plugin.stats() if budget else None
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            training.steps(LOOKED_AT)
        after = _plugin.stats() if budget else None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(path))
            row = on_gpu(json.loads(path.read_text()))
    late = slice(steps // 2, steps)  # without the profiler
    row["step"] = 1e3 * statistics.median(training.times[late])
    row["host"] = 1e3 * training.host_s
    for name, counter in (("recomputed", "replay_ns"), ("searches", "search_ns")):
        row[name] = (after[counter] - before[counter]) / 1e6 / LOOKED_AT if budget else 0.0
    return row, torch.cuda.max_memory_allocated()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="bert-large,resnet50")
    parser.add_argument("--budget", type=float, default=0.5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", metavar="FILE", help="also write the table there")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here")
    Machine("cuda").prepare()
    table = []
    print(f"{'ms':24}" + "".join(f"{it:>12}" for it in COLUMNS))
    for name in options.networks.split(","):
        plain, peak = look(name, options.steps)
        bound, _ = look(name, options.steps, int(options.budget * peak))
        for what, row in ((f"{name}, plain", plain), (f"{options.budget:.0%} of it", bound)):
            print(f"{what:24}" + "".join(f"{row[it]:12.1f}" for it in COLUMNS), flush=True)
            table.append({"network": name, "budget": what, **row})
    if options.json:
        Path(options.json).write_text(json.dumps({"profile": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
