"""The DTR prototype's simulator and ours, on its own logs: the same figures.

The logs are not ours and not in the repository. COOP_DTR_LOGS names their folder.
"""

import csv
import math
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOGS = Path(os.environ.get("COOP_DTR_LOGS", ROOT / "../shared/traces/dtr"))
REFERENCE = ROOT / "tests/data/dtr_reference.csv"
TOLERANCE = 0.01  # of the total time over the time without a budget

# Where we differ today by more than that, and by how much at most. To be explained or mended; one
# that has come within the tolerance fails the test too: take it out.
KNOWN_DIFFERENCES = {
    ("tv_densenet121-84", 0.5): 0.02,
    ("tv_densenet121-84", 0.3): 0.02,
    ("tv_densenet121-84", 0.2): 0.03,
    ("resnet32-56", 0.2): 0.05,
    ("unet-6", 0.4): math.inf,  # it fits, and theirs runs out of memory
    ("unet-6", 0.3): math.inf,  # as well
    ("lstm-128", 0.3): 0.12,
    ("lstm-128", 0.2): 0.22,
}


def reference_cells():
    lines = (line for line in REFERENCE.read_text().splitlines() if not line.startswith("#"))
    for row in csv.DictReader(lines):
        if row["reference"] == "DTR prototype":
            time = math.inf if row["time"] == "none" else float(row["time"])
            yield row["trace"], float(row["ratio"]), time


def log_of(trace):
    found = sorted(LOGS.glob(f"{trace}-*.log*"))
    if not found:
        pytest.skip(f"no log {trace} in {LOGS}; COOP_DTR_LOGS names the folder")
    return found[0].resolve()


@pytest.mark.parametrize(("trace", "ratio", "theirs"), list(reference_cells()))
def test_dtr_agrees_with_the_prototype(coop_sim, trace, ratio, theirs):
    world = ("--policy", "dtr", "--no-fragmentation")
    result = coop_sim.json("run", log_of(trace), *world, "--ratio", ratio)
    ours = 1 + result["overhead"] if result["status"] == "ok" else math.inf
    difference = 0 if ours == theirs else abs(ours - theirs)
    known = KNOWN_DIFFERENCES.get((trace, ratio))
    if known is None:
        assert difference <= TOLERANCE, f"ours {ours:.3f}, theirs {theirs:.3f}"
    else:
        assert difference > TOLERANCE, "this difference is gone: take it out of KNOWN_DIFFERENCES"
        assert difference <= known, f"it has grown: ours {ours:.3f}, theirs {theirs:.3f}"
