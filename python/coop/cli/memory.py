"""Whose memory a program may have, and how much if nobody says."""

from __future__ import annotations

import os
import resource
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
    page = os.sysconf("SC_PAGESIZE")
    free = [os.sysconf("SC_AVPHYS_PAGES") * page]
    for line in _lines(Path("/proc/meminfo")):
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            free = [int(amount.split()[0]) << 10]
    free += _left_to_groups(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
    if addresses != resource.RLIM_INFINITY:
        taken = "".join(_lines(Path("/proc/self/statm"))).split()
        free.append(addresses - (int(taken[0]) * page if taken else 0))
    return max(min(free), 0)


def _left_to_groups(memberships: Path, mounted: Path) -> list[int]:
    """To the control group of this process and to all above it, those that have a limit. In a
    container the group's own path leads nowhere, and its limit is where the mount is."""
    left = []
    for line in _lines(memberships):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = mounted, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = mounted / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / path.lstrip("/")
        for each in [group, *group.parents]:
            if each.is_relative_to(root):
                left += _left_to_group(each, *names)
    return left


def _left_to_group(group: Path, limit: str, used: str, files: str) -> list[int]:
    bytes_at_most = _number(group / limit)
    if bytes_at_most is None:
        return []
    # Of what the group holds, files that were read can go.
    statistics = dict(line.split() for line in _lines(group / "memory.stat"))
    return [bytes_at_most - (_number(group / used) or 0) + int(statistics.get(files, 0))]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    """None where there is none: "max", or no such file."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None
