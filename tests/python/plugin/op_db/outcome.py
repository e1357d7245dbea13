"""What is left of a run, and whether two are alike to the bit."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.utils._pytree import tree_leaves

from op_db.made import Made


@dataclass
class Outcome:
    """Named things; tensors among them are looked at after the budget's end."""

    things: list[tuple[str, object]] = field(default_factory=list)
    error: BaseException | None = None
    made: Made = field(default_factory=Made)

    def add(self, name: str, tree: object) -> None:
        self.things += [(f"{name}[{i}]", leaf) for i, leaf in enumerate(tree_leaves(tree))]


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    if tensor.is_mkldnn:
        return [tensor.to_dense()]
    if tensor.is_nested:
        return list(tensor.unbind())
    return []


def _shape(tensor: torch.Tensor) -> tuple:
    about = (type(tensor), tensor.dtype, tensor.layout, tensor.device, tensor.requires_grad)
    if tensor.is_nested or tensor.layout != torch.strided:
        return about
    looks = (tensor.is_conj(), tensor.is_neg(), tensor.storage_offset())
    return (*about, tuple(tensor.shape), tensor.stride(), *looks)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    return tensor.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def _why_tensors_differ(a: torch.Tensor, b: torch.Tensor) -> str | None:
    a, b = a.detach().requires_grad_(a.requires_grad), b.detach().requires_grad_(b.requires_grad)
    if _shape(a) != _shape(b):
        return f"{_shape(a)} became {_shape(b)}"
    a, b = a.detach(), b.detach()
    if a.device.type == "meta":
        return None
    parts = _parts(a)
    if parts:
        pairs = zip(parts, _parts(b), strict=True)
        return next((why for x, y in pairs if (why := _why_tensors_differ(x, y))), None)
    x, y = _bytes(a), _bytes(b)
    if torch.equal(x, y):
        return None
    return f"{int((x != y).sum())} of {x.numel()} bytes differ, of {tuple(a.shape)} {a.dtype}"


def _why_differ(a: object, b: object) -> str | None:
    if type(a) is not type(b):
        return f"{type(a)} became {type(b)}"
    if isinstance(a, torch.Tensor):
        return _why_tensors_differ(a, b)
    same = a == b or (a != a and b != b)
    return None if same else f"{a!r} became {b!r}"


def _memory(things: list[tuple[str, object]]) -> list[int]:
    """Which of them share memory: each one's first companion."""
    first: dict[int, int] = {}
    found = []
    for i, (_, thing) in enumerate(things):
        is_plain = isinstance(thing, torch.Tensor) and thing.layout == torch.strided
        if is_plain and not thing.is_mkldnn and not thing.is_nested:
            found.append(first.setdefault(thing.untyped_storage()._cdata, i))
        else:
            found.append(i)
    return found


def differences(plain: Outcome, other: Outcome) -> list[str]:
    if plain.error or other.error:
        if plain.error and other.error:
            return []
        return [f"raised: {type(other.error or plain.error).__name__}: {other.error}"]
    names = [name for name, _ in plain.things]
    if names != [name for name, _ in other.things]:
        return [f"{names} became {[name for name, _ in other.things]}"]
    found = [
        f"{name}: {why}"
        for (name, a), (_, b) in zip(plain.things, other.things, strict=True)
        if (why := _why_differ(a, b))
    ]
    if _memory(plain.things) != _memory(other.things):
        found.append(f"shared memory {_memory(plain.things)} became {_memory(other.things)}")
    return found
