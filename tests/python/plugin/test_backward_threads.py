"""Backward passes on other threads than forward: the program's, and autograd's own."""

import threading
from contextlib import nullcontext
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402


def backward_from_threads(weights):
    """Two graphs that this thread has made, and that share all parameters."""
    torch.manual_seed(2)
    losses = []
    for _ in range(2):
        x = torch.randn(256, 64)
        for weight in weights:
            x = (x @ weight).tanh()
        losses.append(x.square().mean())
    threads = [threading.Thread(target=it.backward) for it in losses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return losses


class Deeper(torch.autograd.Function):
    """A backward pass inside a backward pass, and so on: those too deep get threads."""

    threads: ClassVar = set()

    @staticmethod
    def forward(ctx, x, depth):
        ctx.save_for_backward(x)
        ctx.depth = depth
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        Deeper.threads.add(threading.get_ident())
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = (x * gradient).detach().requires_grad_()
            made = Deeper.apply(inner, ctx.depth - 1) if ctx.depth else inner.sin()
            made.tanh().sum().backward()
        return inner.grad + gradient, None


def backward_in_backward(weights):
    Deeper.threads.clear()
    losses = [Deeper.apply(weights[0], 64).sum()]
    losses[0].backward()
    assert len(Deeper.threads) > 1
    return losses


@pytest.mark.parametrize(
    ("work", "kibibytes"), [(backward_from_threads, 960), (backward_in_backward, 1536)]
)
def test_backward_threads(work, kibibytes):
    def run(scope):
        torch.manual_seed(1)
        weights = [torch.randn(64, 64).requires_grad_() for _ in range(4)]
        with scope:
            losses = work(weights)
            replays = torch.ops.coop.stats()["replays"] if torch.ops.coop.has_budget() else 0
        return [*losses, *(it.grad for it in weights if it.grad is not None)], replays

    _plugin.load()
    wanted, _ = run(nullcontext())
    for scope in (
        _plugin.budget(64 << 20, stress=True, small_limit=0),
        _plugin.budget(kibibytes << 10, small_limit=4096),
    ):
        results, replays = run(scope)
        assert replays > 0
        assert all(torch.equal(a, b) for a, b in zip(results, wanted, strict=True))
