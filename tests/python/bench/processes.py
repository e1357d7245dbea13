"""Which processes there are."""

import time
from pathlib import Path


def is_running(process):
    """One that has ended may wait for somebody to ask how."""
    stat = _stat(process)
    return stat is not None and stat[0] not in "ZX"


def below(process):
    """Those that it has started, and those that they have."""
    parents = {int(it.name): _stat(it.name) for it in Path("/proc").glob("[0-9]*")}
    found = [it for it, stat in parents.items() if stat is not None and int(stat[1]) == process]
    return [*found, *(each for it in found for each in below(it))]


def wait_until(is_so, seconds=60):
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it has taken too long"
        time.sleep(0.05)


def _stat(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
