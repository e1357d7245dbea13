"""What comes of measuring: figures, or why there are none."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import torch

from coop.bench.ways import NotTriedError
from coop.cli.parser import one_line


class LostError(Exception):
    """Another process has no figures; its outcome says why."""

    def __init__(self, outcome: dict) -> None:
        super().__init__(f"{outcome['status']}: {outcome['why']}")
        self.outcome = outcome


def try_to(measure: Callable[..., dict], *arguments: str) -> dict:
    """What it found, or why it did not."""
    try:
        return {"status": "ok", **measure(*arguments)}
    except LostError as lost:
        return lost.outcome
    except NotTriedError as error:
        return {"status": "not tried", "why": str(error)}
    except torch.OutOfMemoryError as error:
        status = "too slow" if "times slower" in str(error) else "does not fit"
        return _failed(status, error)
    except Exception as error:
        traceback.print_exc()
        return _failed("failed", error)


def _failed(status: str, error: Exception) -> dict:
    traceback.clear_frames(error.__traceback__)  # what they hold would count in the next run
    return {"status": status, "why": f"{type(error).__name__}: {one_line(error)}"}
