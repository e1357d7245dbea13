"""Is every operator seen, and once, in all the ways in which PyTorch runs them?

coop stands where PyTorch promises nothing. So before the first budget a few operators run in each
of these ways, and if one of them is missed or seen twice, coop does not start.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd.graph import saved_tensors_hooks


def _input() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


def _forward() -> None:
    _input().erf()


def _backward() -> None:
    _input().tanh().sum().backward()


def _no_grad() -> None:
    with torch.no_grad():
        _input().erf()


def _inference_mode() -> None:
    with torch.inference_mode():
        torch.ones(2).erf()


class _Erf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        return x.erf()

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> torch.Tensor:
        return grad.sinh()


def _autograd_function() -> None:
    _Erf.apply(_input()).sum().backward()


# Operators in the middle of a backward pass, as torch.utils.checkpoint runs them. Not that one
# itself: its first call imports the compiler, which takes a second, only to keep it out.
def _checkpoint() -> None:
    x = _input()
    y = x.erf()
    with saved_tensors_hooks(lambda _: None, lambda _: x.detach().erf().tanh()):
        z = y.tanh()
    z.sum().backward()


def _vmap() -> None:
    torch.func.vmap(torch.erf)(torch.ones(2, 3))


def _autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))


# What the optimizers call, and not those: to import them takes a second.
def _foreach_optimizer() -> None:
    with torch.no_grad():
        torch._foreach_add_([torch.ones(2)], [torch.ones(2)], alpha=-0.1)


def _fused_optimizer() -> None:
    options = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.1, "dampening": 0.0}
    switches = {"nesterov": False, "maximize": False, "is_first_step": True}
    with torch.no_grad():
        torch._fused_sgd_([torch.ones(2)], [torch.ones(2)], [], **options, **switches)


# How often which operators must be seen in each.
CASES: dict[str, tuple[Callable[[], None], dict[str, int]]] = {
    "forward": (_forward, {"aten::erf": 1}),
    "backward": (_backward, {"aten::tanh": 1, "aten::tanh_backward": 1}),
    "no_grad": (_no_grad, {"aten::erf": 1}),
    "inference_mode": (_inference_mode, {"aten::erf": 1}),
    "autograd.Function": (_autograd_function, {"aten::erf": 1, "aten::sinh": 1}),
    "checkpoint": (_checkpoint, {"aten::erf": 2, "aten::tanh_backward": 1}),
    "vmap": (_vmap, {"aten::erf": 1}),
    "autocast": (_autocast, {"aten::mm": 1}),
    "foreach optimizer": (_foreach_optimizer, {"aten::_foreach_add_.List": 1}),
    "fused optimizer": (_fused_optimizer, {"aten::_fused_sgd_": 1}),
}


def seen_in(function: Callable[[], None]) -> list[str]:
    """The operators that come through while it runs."""
    torch.ops.coop.begin_watching()
    try:
        function()
    finally:
        seen = torch.ops.coop.end_watching()
    return seen


def self_test() -> None:
    # On the CPU, whatever the program's default is: a GPU's backward pass has a thread of its own.
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.device("cpu"):
        wrong = [
            f"{case}: {op} {seen.count(op)} times instead of {times}"
            for case, (function, wanted) in CASES.items()
            for seen in [seen_in(function)]
            for op, times in wanted.items()
            if seen.count(op) != times
        ]
    if wrong:
        raise RuntimeError(
            "coop does not see PyTorch's operators as it must, and does not start: this version of "
            "PyTorch is not supported, or other code has taken its place in the dispatcher\n  "
            + "\n  ".join(wrong)
        )
