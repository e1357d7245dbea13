"""The ways in which a network can be trained: plain, in a budget of ours, with what others have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import coop
from coop.bench.catalog import Network
from coop.bench.machine import Machine

AMPLE = "90%"
"""Of the device's memory: a budget that does not bind."""
TOO_SLOW = 4.0
"""A budget that makes a program so many times slower is one that it does not fit into."""
PACE_WINDOW = 2.0
"""Seconds of plain operators after which that is said: not while a plan is still being made."""


class NotTriedError(Exception):
    """It makes no sense here; and why."""


def _as_it_is(model: nn.Module) -> nn.Module:
    return model


@dataclass(frozen=True)
class Way:
    scope: Callable[[], AbstractContextManager] = nullcontext
    """Around all of it."""
    around_forward: Callable[[], AbstractContextManager] = nullcontext
    prepare: Callable[[nn.Module], nn.Module] = _as_it_is
    is_counted: bool = False
    """By coop."""
    told: dict | None = None
    """How another process makes the same, with way_of()."""


PLAIN = Way(told={})


def inside(
    size: int | str,
    device: str,
    policy: str = "coop",
    *,
    too_slow: float = TOO_SLOW,
    pace_window: float = PACE_WINDOW,
) -> Way:
    def scope() -> coop.budget:
        budget = coop.budget(size, policy=policy, device=device, max_slowdown=too_slow)
        budget._pace_window = pace_window
        return budget

    told = {"size": size, "policy": policy, "too_slow": too_slow, "pace_window": pace_window}
    return Way(scope=scope, is_counted=True, told=told)


def counted(way: Way, device: str) -> Way:
    """The same in a budget that does not bind, for what it holds at most."""

    def scope() -> AbstractContextManager:
        stack = ExitStack()
        stack.enter_context(coop.budget(AMPLE, device=device))
        stack.enter_context(way.scope())
        return stack

    told = None if way.told is None else {**way.told, "is_counted": True}
    return Way(scope, way.around_forward, way.prepare, is_counted=True, told=told)


def peer(name: str, network: Network, machine: Machine) -> Way:
    """By its name in the table: checkpoint, save_on_cpu, compile, compile@0.5."""
    told = {"peer": name}
    if name == "checkpoint":
        return Way(prepare=partial(_checkpointed, layers=network.layers), told=told)
    if name == "save_on_cpu":
        if not machine.has_gpu:
            raise NotTriedError("what is on a CPU is there already")
        around_forward = partial(torch.autograd.graph.save_on_cpu, pin_memory=True)
        return Way(around_forward=around_forward, told=told)
    if network.not_compiled is not None:
        raise NotTriedError(network.not_compiled)
    _, _, share = name.partition("@")
    scope = partial(_Compiling, float(share) if share else None)
    return Way(scope=scope, prepare=torch.compile, told=told)


def way_of(told: dict, network: Network, machine: Machine) -> Way:
    """What `Way.told` says."""
    if "is_counted" in told:
        rest = {key: value for key, value in told.items() if key != "is_counted"}
        return counted(way_of(rest, network, machine), machine.device)
    if "peer" in told:
        return peer(told["peer"], network, machine)
    return inside(device=machine.device, **told) if told else PLAIN


def _checkpointed(model: nn.Module, layers: tuple[str, ...]) -> nn.Module:
    """Every one of these layers, as people do by hand."""
    for module in model.modules():
        if type(module).__name__ in layers:
            module.forward = partial(checkpoint, module.forward, use_reentrant=False)
    return model


class _Compiling:
    """PyTorch compiles at the first step, and reads then which share of activations to keep."""

    def __init__(self, share: float | None) -> None:
        self._share = share

    def __enter__(self) -> None:
        torch._dynamo.reset()
        self._patch: AbstractContextManager = nullcontext()
        if self._share is not None:
            from torch._functorch import config

            if not hasattr(config, "activation_memory_budget"):
                raise NotTriedError(f"PyTorch {torch.__version__} has no activation_memory_budget")
            self._patch = config.patch(activation_memory_budget=self._share)
        self._patch.__enter__()

    def __exit__(self, *error: object) -> None:
        self._patch.__exit__(*error)
        torch._dynamo.reset()
