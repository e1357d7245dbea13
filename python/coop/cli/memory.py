"""Whose memory a program may have, and how much if nobody says."""

from __future__ import annotations

import os

import torch

from coop import _plugin
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
    _plugin.load()
    free = torch.ops.coop.free_bytes(device)
    if device.type == "cuda":
        return free - min(_GIB, free // 8)
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # by torchrun, on this machine
    return free * 9 // 10 // max(processes, 1)
