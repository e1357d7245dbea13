"""A U-Net that learns to take noise out of pictures, as diffusion models do."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from coop.bench.networks.workload import Batch, Workload, numbers_of

MOMENTS = 1000


def full(batch: int) -> Workload:
    return Workload(lambda: UNet((192, 384, 576, 768)), noise(batch, 4, 64), difference)


def small(batch: int) -> Workload:
    return Workload(lambda: UNet((32, 64, 96)), noise(batch, 4, 32), difference)


def noise(size: int, channels: int, side: int) -> Callable[[int], Batch]:
    """A clean picture, and the noise that will be put over it."""

    def batch(step: int) -> Batch:
        draw = numbers_of(step)
        shape = (size, channels, side, side)
        return torch.randn(shape, generator=draw), torch.randn(shape, generator=draw)

    return batch


def difference(model: nn.Module, clean: Tensor, noise: Tensor) -> Tensor:
    """At moments drawn at random from those of the way from picture to noise."""
    moments = torch.randint(MOMENTS, (len(clean),), device=clean.device)
    share = ((moments + 1) / MOMENTS).view(-1, 1, 1, 1)
    return functional.mse_loss(model(clean * (1 - share) + noise * share, moments), noise)


def wave(moments: Tensor, width: int) -> Tensor:
    steps = torch.arange(width // 2, device=moments.device) * (-math.log(10000) / (width // 2))
    angles = moments[:, None] * steps.exp()[None]
    return torch.cat([angles.sin(), angles.cos()], 1)


def norm(width: int) -> nn.Module:
    return nn.GroupNorm(32, width)


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, width: int, of_moment: int) -> None:
        super().__init__()
        self.first = nn.Sequential(norm(inputs), nn.SiLU(), nn.Conv2d(inputs, width, 3, padding=1))
        self.moment = nn.Linear(of_moment, width)
        self.second = nn.Sequential(
            norm(width), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(width, width, 3, padding=1)
        )
        self.shortcut = nn.Conv2d(inputs, width, 1) if inputs != width else nn.Identity()

    def forward(self, x: Tensor, moment: Tensor) -> Tensor:
        inner = self.first(x) + self.moment(moment)[:, :, None, None]
        return self.shortcut(x) + self.second(inner)


class Attention(nn.Module):
    """Of every place to every other."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.norm = norm(width)
        self.inner = nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        shape = (len(x), self.heads, x.shape[1] // self.heads, -1)
        parts = self.inner(self.norm(x)).chunk(3, 1)
        query, key, value = (part.reshape(shape).transpose(2, 3) for part in parts)
        seen = functional.scaled_dot_product_attention(query, key, value)
        return x + self.out(seen.transpose(2, 3).reshape(x.shape))


class UNet(nn.Module):
    """Two blocks on every level, attention on the two lowest."""

    def __init__(self, widths: tuple[int, ...], channels: int = 4) -> None:
        super().__init__()
        self.width = widths[0]
        inner = 4 * self.width
        self.moment = nn.Sequential(
            nn.Linear(self.width, inner), nn.SiLU(), nn.Linear(inner, inner), nn.SiLU()
        )
        self.entry = nn.Conv2d(channels, self.width, 3, padding=1)
        down, up, kept, now = [], [], [self.width], self.width
        for level, width in enumerate(widths):
            has_attention = level >= len(widths) - 2
            if level > 0:
                down.append(nn.Conv2d(now, now, 3, 2, 1))
                kept.append(now)
            for _ in range(2):
                down += _block(now, width, inner, has_attention)
                now = width
                kept.append(now)
        middle = [*_block(now, now, inner, True), *_block(now, now, inner, False)]
        for level, width in reversed(list(enumerate(widths))):
            has_attention = level >= len(widths) - 2
            for _ in range(3):
                up += _block(now + kept.pop(), width, inner, has_attention)
                now = width
            if level > 0:
                up.append(nn.ConvTranspose2d(now, now, 4, 2, 1))
        self.down, self.middle, self.up = map(nn.ModuleList, (down, middle, up))
        self.exit = nn.Sequential(norm(now), nn.SiLU(), nn.Conv2d(now, channels, 3, padding=1))

    def forward(self, x: Tensor, moments: Tensor) -> Tensor:
        moment = self.moment(wave(moments, self.width))
        x = self.entry(x)
        kept = [x]
        for part in self.down:
            if isinstance(part, Attention):
                kept[-1] = x = part(x)
                continue
            x = part(x, moment) if isinstance(part, ResidualBlock) else part(x)
            kept.append(x)
        for part in self.middle:
            x = part(x, moment) if isinstance(part, ResidualBlock) else part(x)
        for part in self.up:
            if isinstance(part, ResidualBlock):
                x = part(torch.cat([x, kept.pop()], 1), moment)
            else:
                x = part(x)
        return self.exit(x)


def _block(inputs: int, width: int, of_moment: int, has_attention: bool) -> list[nn.Module]:
    block = ResidualBlock(inputs, width, of_moment)
    return [block, Attention(width)] if has_attention else [block]
