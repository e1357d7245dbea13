"""What a budget promises of memory: the process shrinks with it, and nothing grows over steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20

# Memory that a process once had cannot be told from memory that it has, so each is one of its own.
TRAINING = """
import json, sys
from contextlib import nullcontext
from pathlib import Path
import torch
from coop import _plugin

def peak_resident_bytes():  # what getrusage says is never less than its parent had
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(it.split()[1]) << 10 for it in lines if it.startswith("VmHWM"))

torch.set_num_threads(1)
torch.manual_seed(0)
# What is loaded by the first budget, and by the first step, is no tensor.
with _plugin.budget(16 << 20):
    torch.nn.Linear(8, 8)(torch.ones(1, 8)).sum().backward()
nbytes = int(sys.argv[1])
with _plugin.budget(nbytes) if nbytes else nullcontext():
    layers = [it for _ in range(24) for it in (torch.nn.Linear(256, 256), torch.nn.Tanh())]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        loss = model(torch.randn(6144, 256)).square().mean()  # 6 MiB in each layer
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    held = _plugin.stats()["peak_held_bytes"] if nbytes else 0
    print(json.dumps({
        "loss": loss.item(),
        "held": held,
        "resident": peak_resident_bytes(),
    }))
"""


def train_in(nbytes):
    paths = [str(Path(_plugin.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(nbytes)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts resident pages of Linux")
def test_the_process_shrinks_with_the_pool():
    plain, unbound = train_in(0), train_in(2048 * MIB)
    budget = unbound["held"] // 2
    bound = train_in(budget)
    assert plain["loss"] == unbound["loss"] == bound["loss"]
    assert bound["held"] <= budget
    saved = unbound["held"] - bound["held"]
    assert saved > 64 * MIB
    assert plain["resident"] - bound["resident"] >= 0.8 * saved
    assert unbound["resident"] - bound["resident"] >= 0.8 * saved


def resident_now():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts resident pages of Linux")
def test_ten_thousand_steps_with_carried_state_are_flat():
    """What is carried from step to step is made from all that came before; none of it is kept."""
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(32, 64)
    optimizer = torch.optim.SGD(cell.parameters(), lr=1e-3, momentum=0.9)

    def step():
        hidden = torch.randn(64, 64) if step.hidden is None else step.hidden
        for _ in range(3):
            hidden = cell(torch.randn(64, 32), hidden)
        loss = hidden.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step.hidden = hidden.detach()
        step.average = loss.detach() * 0.1 + step.average * 0.9

    step.hidden, step.average = None, torch.zeros(())
    seen = []
    with _plugin.budget(560 * KIB, small_limit=2048):
        for number in range(1, 10_001):
            step()
            if number % 2_000 == 0:
                stats = _plugin.stats()
                flat = ("calls", "storages", "held_bytes", "held_by_lineage", "raw_blocks")
                seen.append({**{it: stats[it] for it in flat}, "resident": resident_now()})
        assert stats["evictions"] > 10_000
        assert stats["peak_held_bytes"] <= 560 * KIB
    first, last = seen[0], seen[-1]
    assert last["calls"] <= 1.1 * first["calls"] + 100
    assert last["storages"] <= first["storages"] + 16
    assert last["raw_blocks"] <= first["raw_blocks"] + 16
    assert last["held_by_lineage"] <= first["held_by_lineage"] + 64 * KIB
    assert last["resident"] - first["resident"] < 4 * MIB
