"""A profiler that records shapes asks for the address of every argument before we see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps

import torch
from torch.autograd import profiler

from coop._replaced import replaced


@contextmanager
def profiler_is_served() -> Iterator[None]:
    enable, disable = profiler._enable_profiler, profiler._disable_profiler
    serve = torch.ops.coop.serve_profiler

    @wraps(enable)
    def enable_served(*args, **kwargs):
        serve(True)  # first in the line
        return enable(*args, **kwargs)

    @wraps(disable)
    def disable_served():
        try:
            return disable()
        finally:
            serve(False)

    serve(torch.autograd._profiler_enabled())  # since before the budget
    try:
        with (
            replaced(profiler, "_enable_profiler", enable_served),
            replaced(profiler, "_disable_profiler", disable_served),
        ):
            yield
    finally:
        serve(False)
