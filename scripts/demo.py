#!/usr/bin/env python3
"""Trains a small network twice: with PyTorch alone, then in half the memory with coop.

usage: scripts/demo.sh [--json] [--smoke]

  --json    print what was measured for programs
  --smoke   a tiny network, to see that it works

Each run is a process of its own, and its memory is what the system counts as the process's, less
what it had before the model was made: coop's own word is not taken for it. That has more in it than
a budget is for, which is tensors: what coop counts of those stands below.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

MIB = 1 << 20
SHARE = 0.5
MEMORY = """\
Peak memory is what the system counts as the process's. A budget is for tensors, as coop counts
them: the rest is room between them, and a few MiB that the process needs for itself."""


def status_bytes(field: str) -> int:
    """Of this process, as the system counts it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(field)


# --- one run, in a process of its own ---


def make_model(channels: int, layers: int):
    from torch import nn

    blocks = [
        layer
        for _ in range(layers)
        for layer in (
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Dropout(0.1),
        )
    ]
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, 10),
    )


def train_step(model, optimizer, batch: int) -> float:
    import torch

    labels = torch.randint(10, (batch,))
    # Pictures that are brighter the higher their number, under noise.
    pictures = labels.view(-1, 1, 1, 1) / 10 + torch.randn(batch, 3, 32, 32)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(pictures), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(task: dict) -> dict:
    import coop
    import torch

    torch.use_deterministic_algorithms(True)
    # What libraries take for themselves when they are first used is not the network's.
    with coop.budget("16MiB") if task["budget"] else nullcontext():
        tiny = make_model(task["channels"], 1)
        train_step(tiny, torch.optim.Adam(tiny.parameters()), 2)
        del tiny
    before = status_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is from here on

    torch.manual_seed(task["seed"])
    model = make_model(task["channels"], task["layers"])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    began = time.perf_counter()
    with coop.budget(task["budget"]) if task["budget"] else nullcontext():
        for step in range(task["steps"]):
            losses.append(train_step(model, optimizer, task["batch"]))
            print(step + 1, file=sys.stderr, flush=True)
    seconds = time.perf_counter() - began
    peak = status_bytes("VmHWM") - before

    digest = hashlib.sha256()
    tensors = [*model.state_dict().values()]
    for state in optimizer.state.values():
        tensors += [value for value in state.values() if isinstance(value, torch.Tensor)]
    for tensor in [*tensors, *(p.grad for p in model.parameters())]:
        digest.update(tensor.detach().numpy().tobytes())
    return {
        "budget_bytes": task["budget"],
        "peak_bytes": peak,
        "seconds": seconds,
        "losses": [loss.hex() for loss in losses],
        "tensors": len(tensors),
        "digest": digest.hexdigest(),
        "threads": torch.get_num_threads(),
        "pytorch": torch.__version__,
        "stats": coop.stats().as_dict() if task["budget"] else None,
    }


# --- both, and what they have in common ---


def run(task: dict, title: str) -> dict:
    """The run in another process, and how far it is."""
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    is_terminal = sys.stderr.isatty()
    said = []
    for line in process.stderr:
        if line.strip().isdigit():
            done = int(line)
            if is_terminal:
                print(f"\r{title}: step {done} of {task['steps']} ", end="", file=sys.stderr)
            elif done == task["steps"] or done % 10 == 1:
                print(f"{title}: step {done} of {task['steps']}", file=sys.stderr, flush=True)
        else:
            said.append(line)
    if is_terminal:
        print(file=sys.stderr)
    output = process.stdout.read()
    if process.wait() != 0:
        sys.exit(f"{title}: it failed\n{''.join(said)}")
    return json.loads(output)


def mib(nbytes: int) -> str:
    return f"{nbytes / MIB:,.0f} MiB"


def report(task: dict, plain: dict, budgeted: dict, is_equal: bool) -> str:
    stats = budgeted["stats"]
    with_coop = f'coop.budget("{budgeted["budget_bytes"] // MIB}MiB")'
    rows = [
        ("", "PyTorch alone", with_coop),
        ("peak memory", mib(plain["peak_bytes"]), mib(budgeted["peak_bytes"])),
        ("  of tensors", "not counted", mib(stats["peak_bytes"])),
        ("time", f"{plain['seconds']:.1f} s", f"{budgeted['seconds']:.1f} s"),
        ("evictions", "none", f"{stats['evictions']:,}"),
        ("recomputations", "none", f"{stats['recomputations']:,}"),
        ("last loss", *(f"{float.fromhex(r['losses'][-1]):.9f}" for r in (plain, budgeted))),
    ]
    lines = [f"{name:14}  {a:>15}  {b:>23}".rstrip() for name, a, b in rows]
    verdict = (
        f"All {task['steps']} losses, and all {plain['tensors']} tensors of model and optimizer at "
        f"the end, are equal bit for bit."
        if is_equal
        else "The two runs DIFFER: this is a fault in coop."
    )
    about = (
        f"{task['layers'] + 1} convolutions with batch norm and dropout, {task['batch']} pictures "
        f"a step, {task['steps']} steps, Adam,\non {plain['threads']} threads of this CPU:"
    )
    return "\n".join([about, "", *lines, "", MEMORY, "", verdict])


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/demo.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print what was measured for programs")
    parser.add_argument("--smoke", action="store_true", help="a tiny network, to see that it works")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(train(options.task)))
        return
    task = {"seed": 1, "channels": 32, "layers": 10, "batch": 64, "steps": 20, "budget": 0}
    if options.smoke:
        task |= {"layers": 4, "batch": 16, "steps": 3}
    plain = run(task, "PyTorch alone")
    task["budget"] = int(SHARE * plain["peak_bytes"]) // MIB * MIB
    budgeted = run(task, "with half the memory")
    is_equal = all(plain[name] == budgeted[name] for name in ("losses", "tensors", "digest"))
    if options.json:
        print(json.dumps({"task": task, "plain": plain, "budget": budgeted, "equal": is_equal}))
    else:
        print(report(task, plain, budgeted, is_equal))
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()
