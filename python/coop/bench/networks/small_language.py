"""Networks for words that train on a CPU, and need nothing but PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from coop.bench.networks.workload import Workload, words

WORDS = 1000


def bert(batch: int, shortest: int | None = None) -> Workload:
    return Workload(
        lambda: Transformer(EncoderLayer, layers=4, width=192),
        words(batch, 128, WORDS, shortest),
        _said,
    )


def bert_of_lengths(batch: int) -> Workload:
    return bert(batch, shortest=64)


def gpt(batch: int) -> Workload:
    return Workload(
        lambda: Transformer(DecoderLayer, layers=4, width=192), words(batch, 128, WORDS), _said
    )


def llama(batch: int) -> Workload:
    """In float32: few CPUs are fast in bfloat16."""
    return Workload(
        lambda: Transformer(LlamaLayer, layers=4, width=192), words(batch, 128, WORDS), _said
    )


def _said(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


class Transformer(nn.Module):
    def __init__(self, layer: type[nn.Module], layers: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.layers = nn.Sequential(*(layer(width) for _ in range(layers)))
        self.head = nn.Linear(width, WORDS)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.embedding(x)))


def split(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


class EncoderLayer(nn.Module):
    """BERT's: norms come last, everything sees everything."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.inner = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        parts = [split(each(x), self.heads) for each in self.inner]
        seen = functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
        x = self.norms[0](x + functional.dropout(self.out(seen), 0.1))
        return self.norms[1](x + self.mlp(x))


class DecoderLayer(nn.Module):
    """GPT's: norms come first, and only what was said before is seen."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU("tanh"),
            nn.Linear(4 * width, width),
            nn.Dropout(0.1),
        )
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        parts = [split(part, self.heads) for part in self.inner(self.norms[0](x)).chunk(3, 2)]
        seen = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + functional.dropout(self.out(seen.transpose(1, 2).flatten(2)), 0.1)
        return x + self.mlp(self.norms[1](x))


class LlamaLayer(nn.Module):
    """Root-mean-square norms, turned queries and keys, fewer keys than queries, a gated inside."""

    def __init__(self, width: int, heads: int = 4, keys: int = 2) -> None:
        super().__init__()
        part = width // heads
        self.norms = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, keys * part, bias=False)
        self.value = nn.Linear(width, keys * part, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)
        self.heads, self.keys = heads, keys

    def forward(self, x: Tensor) -> Tensor:
        normal = self.norms[0](x)
        query = turned(split(self.query(normal), self.heads))
        key = turned(split(self.key(normal), self.keys))
        value = split(self.value(normal), self.keys)
        each = self.heads // self.keys
        key, value = key.repeat_interleave(each, 1), value.repeat_interleave(each, 1)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        normal = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normal)) * self.up(normal))


def turned(x: Tensor) -> Tensor:
    """Rotary positions."""
    length, width = x.shape[2:]
    speeds = 10000.0 ** (-torch.arange(0, width, 2, device=x.device) / width)
    angles = (torch.arange(length, device=x.device)[:, None] * speeds).repeat(1, 2)
    left, right = x.chunk(2, 3)
    swapped = torch.cat([-right, left], 3)
    return x * angles.cos().to(x.dtype) + swapped * angles.sin().to(x.dtype)
