"""What torch.compile made: kernels that read and write memory without an operator.

Each compiled graph runs as one operator of which nothing is known: what goes in is there while it
runs, and may have been written; what comes out is memory like any other, and not made again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps

import torch

from coop._replaced import replaced

_GRAPHS = ("CompiledFxGraph", "CompiledAOTI")  # of torch._inductor.output_code
_next = threading.local()  # what the operator is to run


def _run(inputs: list[torch.Tensor]) -> None:
    graph, _next.graph = _next.graph, None  # it may run others inside
    graph()


@cache
def _operator() -> Callable:
    library = torch.library.Library("coop_compiled", "DEF")  # lives as long as this function
    # Nothing returned: PyTorch would not have an operator return what it was given.
    library.define("run(Tensor[] inputs) -> ()")
    library.impl("run", _run, "CompositeExplicitAutograd")
    _operator.library = library
    return torch.ops.coop_compiled.run


def _as_operator(call: Callable) -> Callable:
    @wraps(call)
    def call_seen(graph, inputs):
        if not torch.ops.coop.is_thread_in_scope():
            return call(graph, inputs)
        results = []

        _next.graph = lambda: results.append(call(graph, inputs))
        _operator()([it for it in inputs if isinstance(it, torch.Tensor)])
        return results[0]

    return call_seen


@contextmanager
def compiled_graphs_are_seen() -> Iterator[None]:
    with ExitStack() as stack:
        seen = set()

        def see_graphs() -> None:
            module = sys.modules.get("torch._inductor.output_code")
            for name in _GRAPHS:
                kind = getattr(module, name, None)
                if kind is not None and kind not in seen:
                    seen.add(kind)
                    call = _as_operator(kind.__call__)
                    stack.enter_context(replaced(kind, "__call__", call))

        # To import the compiler would take seconds; it imports itself when it is first used.
        compile_graph = torch._TorchCompileInductorWrapper.__call__

        @wraps(compile_graph)
        def compile_seen(*args, **kwargs):
            compiled = compile_graph(*args, **kwargs)
            see_graphs()
            return compiled

        see_graphs()
        inductor = torch._TorchCompileInductorWrapper
        stack.enter_context(replaced(inductor, "__call__", compile_seen))
        yield
