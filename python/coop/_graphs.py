"""CUDA graphs that are launched inside a budget: no operator shows what they write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from weakref import WeakSet

import torch

from coop._replaced import replaced


@contextmanager
def graphs_are_seen() -> Iterator[None]:
    """What a graph uses that is captured inside is known. Of one from before it is not."""
    kind = torch.cuda.CUDAGraph
    capture_begin, replay = kind.capture_begin, kind.replay
    captured_inside: WeakSet[torch.cuda.CUDAGraph] = WeakSet()

    @wraps(capture_begin)
    def begin(graph, *args, **kwargs):
        captured_inside.add(graph)
        return capture_begin(graph, *args, **kwargs)

    @wraps(replay)
    def launch(graph, *args, **kwargs):
        if graph not in captured_inside:
            torch.ops.coop.distrust_foreign()
        return replay(graph, *args, **kwargs)

    with ExitStack() as stack:
        stack.enter_context(replaced(kind, "capture_begin", begin))
        stack.enter_context(replaced(kind, "replay", launch))
        yield
