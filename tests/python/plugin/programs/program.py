"""Small programs that train for a few steps, and what is left of them.

A program is a function that builds a model, its optimizer and its data, and returns a Training,
whose step() the runner calls. All randomness comes from PyTorch's generator, seeded before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from coop import _plugin
from torch import nn

STEPS = 5


@dataclass
class Training:
    step: Callable[[], torch.Tensor]  # the loss
    models: Iterable[nn.Module] = ()
    optimizers: Iterable = ()
    # Whatever else must be the same at the end: tensors, or functions that give some.
    kept: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    name: str
    build: Callable[[], Training]
    # A budget of this share of its peak must do; a smaller one may be out of memory.
    least_share: float
    # Why it cannot run here, if it cannot.
    skip: Callable[[], str | None]


PROGRAMS: dict[str, Program] = {}


def program(*, least_share: float = 0.95, skip: Callable[[], str | None] = lambda: None):
    def register(build: Callable[[], Training]) -> Callable[[], Training]:
        name = build.__name__
        assert name not in PROGRAMS
        PROGRAMS[name] = Program(name, build, least_share, skip)
        return build

    return register


@dataclass
class Outcome:
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    stats: dict[str, int] = field(default_factory=dict)

    def keep(self, name: str, value: object) -> None:
        if callable(value) and not isinstance(value, torch.Tensor):
            value = value()
        if isinstance(value, torch.Tensor):
            self.tensors[name] = value.detach().clone()
        elif isinstance(value, dict):
            for key, it in value.items():
                self.keep(f"{name}.{key}", it)
        elif isinstance(value, (list, tuple)):
            for index, it in enumerate(value):
                self.keep(f"{name}.{index}", it)
        elif isinstance(value, (bool, int, float)):
            self.tensors[name] = torch.tensor(value, dtype=torch.float64)

    def keep_model(self, name: str, model: nn.Module) -> None:
        for key, parameter in model.named_parameters():
            self.keep(f"{name}.{key}", parameter)
            if parameter.grad is not None:
                self.keep(f"{name}.{key}.grad", parameter.grad)
        for key, buffer in model.named_buffers():
            self.keep(f"{name}.{key}", buffer)


def run(
    it: Program,
    seed: int,
    budget: AbstractContextManager | None = None,
    *,
    is_older: bool = False,
) -> Outcome:
    """is_older: built before the budget begins, so that its parameters lie outside the pool."""
    outcome = Outcome()
    torch.manual_seed(seed)
    losses = []
    if is_older:
        training = it.build()
    with budget or nullcontext():
        if not is_older:
            training = it.build()
        losses = [training.step().detach() for _ in range(STEPS)]
        if budget:
            torch.ops.coop.validate()
            outcome.stats = _plugin.stats()
    # Outside again: what lives on must have come along.
    outcome.keep("losses", losses)
    for index, model in enumerate(training.models):
        outcome.keep_model(f"model.{index}", model)
    for index, optimizer in enumerate(training.optimizers):
        outcome.keep(f"optimizer.{index}", optimizer.state_dict())
    outcome.keep("kept", training.kept)
    outcome.keep("random state", torch.get_rng_state())
    if torch.get_default_device().type == "cuda":
        outcome.keep("random state of the GPU", torch.cuda.get_rng_state())
    return outcome


def differences(a: Outcome, b: Outcome) -> list[str]:
    assert a.tensors.keys() == b.tensors.keys()
    return [name for name in a.tensors if not is_same(a.tensors[name], b.tensors[name])]


def is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """To the bit: NaNs are alike, and 0 is not -0."""
    if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
        return False
    return torch.equal(bytes_of(a), bytes_of(b))


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
