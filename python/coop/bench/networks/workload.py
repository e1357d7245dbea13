"""What is trained: a network, what it is fed, and its loss."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

Batch = tuple[Tensor, Tensor]


def classification(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(model(inputs), targets)


@dataclass(frozen=True)
class Workload:
    """Network and batches are made on the device that is PyTorch's default then."""

    make: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    """Of a step. The same every time, whatever else draws numbers."""
    loss: Callable[[nn.Module, Tensor, Tensor], Tensor] = classification


def images(size: int, side: int, classes: int = 1000) -> Callable[[int], Batch]:
    def batch(step: int) -> Batch:
        draw = numbers_of(step)
        inputs = torch.randn(size, 3, side, side, generator=draw)
        return inputs, torch.randint(classes, (size,), generator=draw)

    return batch


def words(
    size: int, length: int, known: int, shortest: int | None = None
) -> Callable[[int], Batch]:
    """To be said again: what is learned does not matter here. With a shortest length, every batch
    has one of its own, as in programs that pad to the longest of a batch."""
    lengths = range(shortest or length, length + 1)

    def batch(step: int) -> Batch:
        drawn = random.Random(step).choice(lengths)
        inputs = torch.randint(known, (size, drawn), generator=numbers_of(step))
        return inputs, inputs

    return batch


def sequences(size: int, length: int, width: int, classes: int = 10) -> Callable[[int], Batch]:
    def batch(step: int) -> Batch:
        draw = numbers_of(step)
        inputs = torch.randn(size, length, width, generator=draw)
        return inputs, torch.randint(classes, (size,), generator=draw)

    return batch


def numbers_of(step: int) -> torch.Generator:
    return torch.Generator(torch.get_default_device()).manual_seed(step)
