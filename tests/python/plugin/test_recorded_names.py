"""A recording says which module ran what, and what people call its storages."""

import re
from collections import Counter
from importlib import import_module

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.modules import module as module_hooks  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)
        self.register_buffer("scale", torch.ones(64))

    def forward(self, x):
        return torch.tanh(self.inner(x)) * self.scale


class Net(nn.Module):
    def __init__(self, call=lambda block, x: block(x)):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.call = call

    def forward(self, x):
        for block in self.blocks:
            x = self.call(block, x)
        return x.square()


class Recorded:
    def __init__(self, path):
        text = path.read_text()
        self.names = dict(re.findall(r"^name (\d+) (.*)$", text, re.MULTILINE))
        calls = re.findall(r"^(?:call|finish \d+) (\d+) (\d+) ", text, re.MULTILINE)
        self.calls = Counter((self.names[op], self.names.get(it, "")) for op, it in calls)

    def modules_of(self, op):
        return {module for name, module in self.calls if name == op}


def record(path, model, steps=1, optimizer=None):
    with coop.budget("64MiB", device="cpu"), coop.record(path) as recording:
        for _ in range(steps):
            recording.step()
            model(torch.randn(256, 64)).mean().backward()
            if optimizer is not None:
                optimizer.step()
                optimizer.zero_grad()
    return Recorded(path)


def test_operators_are_their_modules_forward_and_backward(tmp_path):
    found = record(tmp_path / "step.coop", Net())
    inner = {"blocks.0.inner", "blocks.1.inner"}
    blocks = {"blocks.0", "blocks.1"}
    assert found.modules_of("aten::addmm") == inner
    assert found.modules_of("aten::mm") == inner  # of its backward
    assert found.modules_of("aten::tanh") == found.modules_of("aten::tanh_backward") == blocks
    assert found.modules_of("aten::pow.Tensor_Scalar") >= {"Net"}  # the outermost: by its class
    assert found.modules_of("aten::mean") == {""}  # the program's own


def test_what_is_checkpointed_is_its_modules_in_backward(tmp_path):
    for is_reentrant in (True, False):

        def call(block, x, is_reentrant=is_reentrant):
            return checkpoint(block, x.requires_grad_(), use_reentrant=is_reentrant)

        found = record(tmp_path / "step.coop", Net(call))
        for module in ("blocks.0.inner", "blocks.1.inner"):
            assert found.calls["aten::addmm", module] == 2  # the second time in backward
            assert found.calls["aten::mm", module] >= 1


def test_storages_have_the_names_of_parameters(tmp_path):
    model = Net()
    adam = torch.optim.Adam(model.parameters())
    found = record(tmp_path / "step.coop", model, steps=2, optimizer=adam)
    for path in ("blocks.0.inner.weight", "blocks.1.inner.bias"):
        wanted = {f"parameter {path}", f"gradient {path}", f"state {path}.exp_avg"}
        assert wanted <= set(found.names.values())
    assert "buffer blocks.1.scale" in found.names.values()
    assert {module for _, module in found.calls} >= {"Adam"}
    assert found.modules_of("aten::addcdiv_") == {"Adam"}


def test_strange_names_do_no_harm(tmp_path):
    model = nn.Sequential()
    model.add_module("<script>alert(1)</script>", nn.Linear(64, 64))
    model.add_module("line\nbreak\tand ünïcode", nn.Linear(64, 64))
    found = record(tmp_path / "step.coop", model)
    wanted = {"<script>alert(1)</script>", "line?break?and ünïcode"}
    assert found.modules_of("aten::addmm") == wanted


def test_a_module_that_fails_is_left(tmp_path):
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    def call(block, x):
        with pytest.raises(ValueError, match="no"):
            Fails()(x)
        return block(x)

    found = record(tmp_path / "step.coop", Net(call))
    assert found.modules_of("aten::tanh") == {"blocks.0", "blocks.1"}


def test_nothing_is_left_behind(tmp_path):
    record(tmp_path / "step.coop", Net(), optimizer=torch.optim.SGD(Net().parameters()))
    assert not module_hooks._global_forward_hooks
    assert not module_hooks._global_forward_pre_hooks
    optimizers = import_module("torch.optim.optimizer")  # torch.optim hides it
    assert not optimizers._global_optimizer_pre_hooks
    assert not optimizers._global_optimizer_post_hooks
    torch.ops.coop.record_module("nobody listens")
