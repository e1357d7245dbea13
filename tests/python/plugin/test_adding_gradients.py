"""Autograd adds gradients up in place where nobody else holds the first of them. What coop knows of
a tensor does not count as somebody else: it is in place wherever it is without coop, and takes as
much memory."""

from collections import Counter

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop
import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

WORDS, WIDTH = 97, 64


def train():
    """Three readers of one tensor: the first of their gradients is a view, and a view holds its
    base, so that the sum with the second is new, and the third is added to that in place. And one
    weight at both ends: the last layer's gradient of it is a view, too, and three of its size are
    there when they are added up."""
    torch.manual_seed(0)
    embedding = torch.randn(WORDS, WIDTH, requires_grad=True)
    parts = [torch.randn(WIDTH, WIDTH, requires_grad=True) for _ in range(3)]
    text = torch.randint(0, WORDS, (2, 64))
    for _ in range(3):
        x = functional.embedding(text, embedding)
        query, key, value = (functional.linear(x, part) for part in parts)
        logits = functional.linear(query * key * value, embedding)
        functional.cross_entropy(logits.flatten(0, 1), text.flatten()).backward()
        for leaf in (embedding, *parts):
            leaf.grad = None


def additions(names):
    counted = Counter(name.removesuffix(".Tensor") for name in names)
    return {name: counted[name] for name in ("aten::add", "aten::add_")}


def recorded(path):
    names = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words[0] == "name":
                names[words[1]] = words[2]
            elif words[0] in ("call", "finish"):
                yield names[words[1 if words[0] == "call" else 2]]


@pytest.mark.parametrize("stress", [False, True])
def test_it_is_in_place_where_it_is_without_coop(tmp_path, stress):
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        train()
    plain = additions(event.name for event in profiled.events())
    assert plain == {"aten::add": 6, "aten::add_": 3}
    path = tmp_path / "step.coop"
    with coop.budget("64MiB", device="cpu", stress=stress), coop.record(path):
        train()
    assert additions(recorded(path)) == plain
