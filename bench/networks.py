"""Networks that train on the CPU in a second or so a step, and their batches."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    def __init__(self, width, inner, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, 4 * inner, 1, bias=False),
            nn.BatchNorm2d(4 * inner),
        )
        self.shortcut = nn.Identity()
        if stride > 1 or width != 4 * inner:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width, 4 * inner, 1, stride, bias=False), nn.BatchNorm2d(4 * inner)
            )

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet50():
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    width = 64
    for inner, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(width, inner, 2 if block == 0 and inner > 64 else 1))
            width = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


class Transformer(nn.Module):
    def __init__(self, layers=4, width=256, words=1000):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, words):
        return self.head(self.layers(self.embedding(words))).flatten(0, 1)


class RandomPath(nn.Module):
    """In every step a part of the blocks, drawn anew."""

    def __init__(self, blocks=24, width=512):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            if torch.rand(()) < 0.7:
                x = x + torch.tanh(block(x))
        return self.head(x)


def images(size, side):
    return lambda step: (torch.randn(size, 3, side, side), torch.randint(1000, (size,)))


def sentences(size, lengths, words=1000):
    def batch(step):
        inputs = torch.randint(words, (size, lengths[step % len(lengths)]))
        return inputs, inputs.flatten()

    return batch


def rows(size, width):
    return lambda step: (torch.randn(size, width), torch.randint(10, (size,)))


def classification(model, inputs, targets):
    return functional.cross_entropy(model(inputs), targets)


@dataclass(frozen=True)
class Network:
    make: Callable[[], nn.Module]
    batch: Callable[[int], tuple[torch.Tensor, torch.Tensor]]  # of a step
    is_adam: bool = True
    loss: Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor] = classification

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        if self.is_adam:
            return torch.optim.Adam(model.parameters(), lr=1e-4)
        return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)


NETWORKS = {
    "resnet50": Network(resnet50, images(8, 224), is_adam=False),
    "transformer": Network(Transformer, sentences(8, [128])),
    "lengths": Network(Transformer, sentences(8, [96, 128, 64, 112])),
    "random-path": Network(RandomPath, rows(1024, 512), is_adam=False),
}
SMALL = {
    "transformer": Network(lambda: Transformer(2, 64, 50), sentences(16, [128], words=50)),
}
