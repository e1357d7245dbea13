"""Networks for pictures that train on a CPU, and need nothing but PyTorch."""

from __future__ import annotations

from torch import Tensor, cat, nn
from torch.nn import functional

from coop.bench.networks.workload import Workload, images


def resnet50(batch: int) -> Workload:
    return Workload(lambda: resnet((3, 4, 6, 3)), images(batch, 128))


def resnet50_full(batch: int) -> Workload:
    """As it was published, and as torchvision has it."""
    return Workload(lambda: resnet((3, 4, 6, 3), inner=64), images(batch, 224))


def resnet152(batch: int) -> Workload:
    return Workload(lambda: resnet((3, 8, 36, 3)), images(batch, 96))


def inception(batch: int) -> Workload:
    return Workload(lambda: _inception(blocks=9), images(batch, 63))


class Bottleneck(nn.Module):
    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolution(width, inner, 1),
            *_convolution(inner, inner, 3, stride),
            nn.Conv2d(inner, 4 * inner, 1, bias=False),
            nn.BatchNorm2d(4 * inner),
        )
        self.shortcut = nn.Identity()
        if stride > 1 or width != 4 * inner:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width, 4 * inner, 1, stride, bias=False), nn.BatchNorm2d(4 * inner)
            )

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet(blocks: tuple[int, ...], inner: int = 16) -> nn.Module:
    """With 16, a quarter as wide as they are."""
    layers = [*_convolution(3, inner, 7, 2), nn.MaxPool2d(3, 2, 1)]
    width = inner
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if block == 0 and stage > 0 else 1
            layers.append(Bottleneck(width, inner << stage, stride))
            width = 4 * (inner << stage)
    return nn.Sequential(*layers, *_head(width))


class InceptionA(nn.Module):
    """Four ways beside each other."""

    def __init__(self, inputs: int, each: int) -> None:
        super().__init__()
        self.ways = nn.ModuleList(
            [
                nn.Sequential(*_convolution(inputs, each, 1)),
                nn.Sequential(*_convolution(inputs, each, 1), *_convolution(each, each, 5)),
                nn.Sequential(
                    *_convolution(inputs, each, 1),
                    *_convolution(each, each, 3),
                    *_convolution(each, each, 3),
                ),
                nn.Sequential(nn.AvgPool2d(3, 1, 1), *_convolution(inputs, each, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return cat([way(x) for way in self.ways], 1)


def _inception(blocks: int, each: int = 16) -> nn.Module:
    layers = [*_convolution(3, each, 3, 2), *_convolution(each, 4 * each, 3)]
    for block in range(blocks):
        if block > 0 and block % 3 == 0:
            layers.append(nn.MaxPool2d(3, 2))
        layers.append(InceptionA(4 * each, each))
    return nn.Sequential(*layers, *_head(4 * each))


def _convolution(inputs: int, width: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    padding = kernel // 2
    convolution = nn.Conv2d(inputs, width, kernel, stride, padding, bias=False)
    return [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]


def _head(width: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)]
