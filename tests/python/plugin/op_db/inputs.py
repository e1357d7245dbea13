"""A sample's arguments, made anew for each run: same numbers, same strides, same shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten


@dataclass
class _View:
    """A tensor as it looks at the bytes of its storage."""

    base: int
    dtype: torch.dtype
    geometry: tuple
    is_conj: bool
    is_neg: bool
    requires_grad: bool

    def over(self, base: torch.Tensor) -> torch.Tensor:
        tensor = base.view(self.dtype).as_strided(*self.geometry)
        if self.is_conj:
            tensor = tensor.conj()
        if self.is_neg:
            tensor = torch._neg_view(tensor)
        return tensor.detach().requires_grad_(self.requires_grad)


@dataclass
class _Other:
    """Not only memory with a shape."""

    tensor: torch.Tensor

    def copy(self) -> torch.Tensor:
        return self.tensor.clone().detach().requires_grad_(self.tensor.requires_grad)


def _is_ordinary(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and (
        tensor.layout == torch.strided
        and tensor.device.type != "meta"
        and not tensor.is_quantized
        and not tensor.is_nested
        and tensor.untyped_storage().nbytes() > 0
        and tensor.untyped_storage().nbytes() % tensor.element_size() == 0
    )


class Recipe:
    """Made outside of any budget. Each copy() is made by operators that coop may run again, so
    that inside a budget even an operator's arguments can be evicted."""

    def __init__(self, *values: object) -> None:
        leaves, self._structure = tree_flatten(values)
        self._bases: list[torch.Tensor] = []
        numbers: dict[int, int] = {}
        self._leaves = [
            self._describe(leaf, numbers) if isinstance(leaf, torch.Tensor) else leaf
            for leaf in leaves
        ]

    def _describe(self, tensor: torch.Tensor, numbers: dict[int, int]) -> object:
        if not _is_ordinary(tensor):
            return _Other(tensor)
        storage = tensor.untyped_storage()
        number = numbers.setdefault(storage._cdata, len(self._bases))
        if number == len(self._bases):
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            self._bases.append(whole.clone())
        geometry = (tensor.shape, tensor.stride(), tensor.storage_offset())
        return _View(
            number,
            tensor.dtype,
            geometry,
            tensor.is_conj(),
            tensor.is_neg(),
            tensor.requires_grad,
        )

    def copy(self) -> tuple:
        bases = [base.clone() for base in self._bases]
        leaves = []
        for leaf in self._leaves:
            if isinstance(leaf, _View):
                leaf = leaf.over(bases[leaf.base])
            elif isinstance(leaf, _Other):
                leaf = leaf.copy()
            leaves.append(leaf)
        return tree_unflatten(leaves, self._structure)
