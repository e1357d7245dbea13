"""Which one this is of the processes that were launched together."""

from __future__ import annotations

import os


def rank() -> str:
    """Empty where there is but one process."""
    return os.environ.get("RANK", "") if os.environ.get("WORLD_SIZE", "1") != "1" else ""


def who() -> str:
    """How the lines of this process begin."""
    return f"coop[{rank()}]" if rank() else "coop"
