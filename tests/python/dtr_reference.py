"""The DTR prototype's logs, and what its simulator gives for them.

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


def reference_cells():
    """(trace, ratio, total time over the time without a budget): infinite where it does not fit."""
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
