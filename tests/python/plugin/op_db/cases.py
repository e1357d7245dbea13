"""Which calls there are: operator, type, sample number, variant."""

from __future__ import annotations

import os
import random
import sys
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import torch

DEVICE = os.environ.get("COOP_DEVICE", "cpu")
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "bool": torch.bool,
    "complex64": torch.complex64,
}
VARIANTS = ("plain", "inplace", "out", "inference", "autocast")
MODES = VARIANTS[-2:]  # only where they are asked for


@dataclass(frozen=True)
class Case:
    op: str
    dtype: str
    sample: int
    variant: str

    def __str__(self) -> str:
        return f"{self.op} --dtype {self.dtype} --sample {self.sample} --variant {self.variant}"


@cache
def operators() -> dict[str, object]:
    if find_spec("expecttest") is None:
        # PyTorch's own tests need it; the list imports it, and does not use it.
        sys.modules["expecttest"] = ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.formatted_name: op for op in op_db}


def seed(number: int = 0) -> None:
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def differentiable(op, dtype: torch.dtype) -> bool:
    is_inexact = dtype.is_floating_point or dtype.is_complex
    return is_inexact and op.supports_autograd and dtype in (op.backward_dtypes or ())


@lru_cache(maxsize=1)
def samples(name: str, dtype: str) -> list[object]:
    """The same ones, with the same numbers, every time. They are copied before they are used."""
    op = operators()[name]
    seed()
    needs_gradient = differentiable(op, DTYPES[dtype])
    return list(op.sample_inputs(DEVICE, DTYPES[dtype], requires_grad=needs_gradient))


@dataclass(frozen=True)
class Selection:
    """Of the cases that there are. By default all of them."""

    most: int | None = None  # samples of an operator, drawn by `seed`
    seed: int = 0
    sample: int | None = None
    variant: str | None = None  # none: all but the modes

    def numbers(self, name: str, dtype: str, count: int) -> list[int]:
        if self.sample is not None:
            return [self.sample]
        if self.most is None or self.most >= count:
            return list(range(count))
        draw = random.Random(f"{self.seed} {name} {dtype}")
        return sorted(draw.sample(range(count), self.most))


ALL = Selection()


def cases_of(name: str, dtype: str, selection: Selection) -> Iterator[tuple[Case, object]]:
    op = operators()[name]
    if DTYPES[dtype] not in op.dtypes:
        return
    all_samples = samples(name, dtype)
    for number in selection.numbers(name, dtype, len(all_samples)):
        for variant in variants(op, all_samples[number]):
            is_wanted = (
                variant not in MODES
                if selection.variant is None
                else (variant == selection.variant)
            )
            if is_wanted:
                yield Case(name, dtype, number, variant), all_samples[number]


def variants(op, sample) -> list[str]:
    found = ["plain"]
    if op.inplace_variant is not None and not sample.broadcasts_input:
        found.append("inplace")
    if op.supports_out:
        found.append("out")
    return [*found, *MODES]
