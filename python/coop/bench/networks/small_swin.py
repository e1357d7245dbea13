"""A transformer for pictures that looks through windows, small enough for a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from coop.bench.networks.workload import Workload, images


def swin(batch: int) -> Workload:
    return Workload(lambda: _swin(48, blocks=(2, 4, 2)), images(batch, 64))


class SwinTransformerBlock(nn.Module):
    """Attention inside of windows, every other time shifted by half of one."""

    def __init__(self, width: int, window: int, shift: int, heads: int = 4) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.inner = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(heads, window**2, window**2))
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width)
        )
        self.window, self.shift, self.heads = window, shift, heads

    def forward(self, x: Tensor) -> Tensor:  # batch, height, width, channels
        x = x + self.look(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))

    def look(self, x: Tensor) -> Tensor:
        if self.shift:
            x = x.roll((-self.shift, -self.shift), (1, 2))
        batch, height, _, channels = x.shape
        count, window = height // self.window, self.window
        parts = x.view(batch, count, window, count, window, channels).transpose(2, 3)
        each = self.inner(parts.reshape(-1, window**2, channels))
        heads = each.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*heads, attn_mask=self.bias)
        seen = self.out(seen.transpose(1, 2).flatten(2))
        whole = seen.view(batch, count, count, window, window, channels).transpose(2, 3)
        x = whole.reshape(x.shape)
        return x.roll((self.shift, self.shift), (1, 2)) if self.shift else x


class Merge(nn.Module):
    """Four neighbours become one, twice as wide."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.linear = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        corners = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.linear(self.norm(torch.cat(corners, 3)))


class Patches(nn.Module):
    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, width, side, side)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x).permute(0, 2, 3, 1)


class Head(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.norm(x).mean((1, 2)))


def _swin(width: int, blocks: tuple[int, ...], window: int = 4) -> nn.Module:
    layers: list[nn.Module] = [Patches(width, 4)]
    for stage, count in enumerate(blocks):
        if stage > 0:
            layers.append(Merge(width))
            width *= 2
        shifts = [window // 2 if block % 2 else 0 for block in range(count)]
        layers += [SwinTransformerBlock(width, window, shift) for shift in shifts]
    return nn.Sequential(*layers, Head(width))
