"""Single path one-shot: every step trains one path, drawn at random, of a network of choices."""

from __future__ import annotations

import random

from torch import Tensor, nn

from coop.bench.networks.workload import Workload, images

KERNELS = (3, 5, 7, 3)


def full(batch: int) -> Workload:
    stages = ((64, 4), (160, 4), (320, 8), (640, 4))
    return Workload(lambda: Supernet(stages), images(batch, 32, classes=10))


def small(batch: int) -> Workload:
    stages = ((32, 3), (64, 3), (128, 4))
    return Workload(lambda: Supernet(stages), images(batch, 32, classes=10))


class Choice(nn.Sequential):
    def __init__(self, inputs: int, width: int, kernel: int, stride: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, kernel, stride, kernel // 2, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.Conv2d(width, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        )


class Supernet(nn.Module):
    def __init__(self, stages: tuple[tuple[int, int], ...], classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.layers = nn.ModuleList()
        inputs = 16
        for stage, (width, count) in enumerate(stages):
            for layer in range(count):
                stride = 2 if stage > 0 and layer == 0 else 1
                choices = [Choice(inputs, width, kernel, stride) for kernel in KERNELS]
                self.layers.append(nn.ModuleList(choices))
                inputs = width
        self.head = nn.Linear(inputs, classes)
        self.draw = random.Random(0)  # whoever trains it meets the same paths

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for choices in self.layers:
            x = self.draw.choice(choices)(x)
        return self.head(x.mean((2, 3)))
