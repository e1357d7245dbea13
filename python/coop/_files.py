"""Files that are there whole, or as they were."""

from __future__ import annotations

import os
from pathlib import Path


def unfinished(path: Path) -> Path:
    """Beside it, and this process's alone."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def write_whole(path: Path, data: bytes) -> None:
    """Where a disk is full, what was there before is there still."""
    path = Path(os.path.realpath(path))  # else a link would be replaced
    beside = unfinished(path)
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def why(error: Exception) -> str:
    """Without the number, and the name, which who asks for it has said."""
    return getattr(error, "strerror", None) or str(error)
