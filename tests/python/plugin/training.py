"""Small trainings, and what is left of them: every number a run without coop leaves as well."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from coop import _plugin
from torch import nn
from torch.nn import functional


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10)
    )


def deep_mlp() -> nn.Module:
    hidden = [layer for _ in range(10) for layer in (nn.Linear(128, 128), nn.Tanh())]
    return nn.Sequential(nn.Linear(64, 128), *hidden, nn.Linear(128, 10))


def deep_cnn() -> nn.Module:
    def block():
        return nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)

    hidden = [layer for _ in range(6) for layer in (*block(), nn.Dropout(0.1))]
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), *hidden, nn.MaxPool2d(4), nn.Flatten(), nn.Linear(128, 10)
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.Dropout(0.3),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(16 * 8 * 8, 10),
    )


def sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


def adam(parameters) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3)


def fused_adam(parameters) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3, fused=True)


@dataclass
class Training:
    model: Callable[[], nn.Module]
    shape: tuple[int, ...]
    optimizer: Callable = sgd
    steps: int = 4
    model_is_older: bool = True  # than the budget: its parameters lie outside the pool


@dataclass
class Outcome:
    losses: list[float] = field(default_factory=list)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    stats: dict[str, int] = field(default_factory=dict)


def run(training: Training, budget: AbstractContextManager | None = None) -> Outcome:
    outcome = Outcome()
    torch.manual_seed(17)
    if training.model_is_older:
        model = training.model()
    with budget or nullcontext():
        if not training.model_is_older:
            model = training.model()
        optimizer = training.optimizer(model.parameters())
        for _ in range(training.steps):
            inputs = torch.randn(training.shape)
            targets = torch.randint(0, 10, training.shape[:1])
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            outcome.losses.append(loss.item())
        if budget:
            torch.ops.coop.validate()
            outcome.stats = _plugin.stats()
    # Outside again: what lives on must have come along.
    tensors = outcome.tensors
    for name, parameter in model.named_parameters():
        tensors[name] = parameter.detach().clone()
        tensors[name + ".grad"] = parameter.grad.clone()
    tensors |= {name: buffer.clone() for name, buffer in model.named_buffers()}
    for index, state in enumerate(optimizer.state.values()):
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                tensors[f"state.{index}.{name}"] = value.clone()
    tensors["random state"] = torch.get_rng_state()
    return outcome


def assert_same(a: Outcome, b: Outcome) -> None:
    assert a.losses == b.losses
    assert a.tensors.keys() == b.tensors.keys()
    differing = [name for name in a.tensors if not torch.equal(a.tensors[name], b.tensors[name])]
    assert not differing
