"""A network whose stages are on different devices, trained; and every number that is left of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

import torch
from coop import _plugin
from torch import nn
from torch.nn import functional

MIB = 1 << 20
SECOND = "second:0"
THIRD = "second:1"


def stage(width: int, dropout: float) -> nn.Module:
    layers = []
    for _ in range(4):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.Tanh(), nn.Dropout(dropout)]
    return nn.Sequential(*layers)


class Stages(nn.Module):
    """Each device has one; activations are copied from one to the next."""

    def __init__(self, devices: tuple[str, ...], width: int = 64) -> None:
        super().__init__()
        self.devices = devices
        self.stages = nn.ModuleList(stage(width, 0.1).to(it) for it in devices)
        self.scale = torch.ones(())  # of the host's, in operators of all

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for device, one in zip(self.devices, self.stages, strict=True):
            x = one(x.to(device)) * self.scale
        return x


def train(
    devices: tuple[str, ...],
    budgets: Callable[[], list[AbstractContextManager]] = list,
    *,
    optimizer=torch.optim.Adam,
    model_is_older: bool = True,
    steps: int = 4,
    rows: int = 256,
    each_step: Callable[[], None] = lambda: None,
) -> dict[str, torch.Tensor]:
    """Every number that is left."""
    torch.manual_seed(17)
    torch.ops.second.manual_seed(17)
    left = {}
    if model_is_older:
        model = Stages(devices)
    with ExitStack() as stack:
        for it in budgets():
            stack.enter_context(it)
        if not model_is_older:
            model = Stages(devices)
        chosen = optimizer(model.parameters(), lr=0.01)
        for step in range(steps):
            x = torch.randn(rows, 64)
            targets = torch.randint(0, 64, (rows,)).to(devices[-1])
            chosen.zero_grad()
            loss = functional.cross_entropy(model(x), targets)
            loss.backward()
            chosen.step()
            left[f"loss {step}"] = torch.tensor(loss.item())
            each_step()
    for name, parameter in model.named_parameters():
        left[name] = parameter.detach().cpu()
        left[f"{name}.grad"] = parameter.grad.cpu()
    for index, state in enumerate(chosen.state.values()):
        for name, value in state.items():
            left[f"state {index} {name}"] = torch.as_tensor(value).cpu()
    left["random state"] = torch.get_rng_state()
    for i in range(2):
        left[f"random state {i}"] = torch.tensor(torch.ops.second.random_state(i))
    return left


def assert_same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert not [name for name in a if not torch.equal(a[name], b[name])]


def stress(device: str, nbytes: int = 32 * MIB) -> AbstractContextManager:
    return _plugin.budget(nbytes, device=device, stress=True, small_limit=0)
