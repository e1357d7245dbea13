"""Whose memory a program may have, and how much if nobody says."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from coop._budget import choose_device

_GIB = 1 << 30


def device_of_this_process(name: str | None) -> torch.device:
    """Of several that were launched together each has a GPU of its own."""
    device = choose_device(name)
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    is_numbered = name is not None and ":" in name
    if device.type == "cuda" and not is_numbered and rank < torch.cuda.device_count():
        return torch.device("cuda", rank)
    return device


def free_bytes(device: torch.device) -> int:
    """What is free, less a margin: 1 GiB on a GPU, where CUDA's own kernels and handles come on top
    (an eighth where that is less); a tenth elsewhere, for Python and all other programs."""
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
        return free - min(_GIB, free // 8)
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # by torchrun, on this machine
    return _free_on_host() * 9 // 10 // max(processes, 1)


def _free_on_host() -> int:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    for line in _lines("/proc/meminfo"):
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            free = int(amount.split()[0]) << 10
    limit = _number("/sys/fs/cgroup/memory.max")
    if limit is not None:
        # Of what the control group holds, files that were read can go.
        statistics = dict(line.split() for line in _lines("/sys/fs/cgroup/memory.stat"))
        files = int(statistics.get("inactive_file", 0))
        used = (_number("/sys/fs/cgroup/memory.current") or 0) - files
        free = min(free, limit - used)
    return max(free, 0)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _number(path: str) -> int | None:
    """None where there is none: "max", or no such file."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None
