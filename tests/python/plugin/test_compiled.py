"""torch.compile of a part: its kernels read and write memory without an operator."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402


class Net(torch.nn.Module):
    """An ordinary layer, a compiled part with kernels of its own and a product, a layer again."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.inner, self.last = (torch.nn.Linear(32, 32) for _ in range(3))
        self.register_buffer("calls", torch.zeros(32))
        self.part = torch.compile(self.body, dynamic=False)

    def body(self, x):
        self.calls.add_(1)  # written by a kernel
        x = torch.tanh(self.inner(x.sin() + x) * 2) + self.calls
        return x.softmax(1) @ self.inner.weight, x.relu()

    def forward(self, x):
        a, b = self.part(torch.tanh(self.first(x)))
        return self.last(a + b.exp())


def train(net, steps):
    torch.manual_seed(5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        x = torch.randn(64, 32)
        before = x * 2
        hidden = torch.tanh(before)
        loss = net(hidden).square().mean() + (hidden * before).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(it.detach() for it in net.state_dict().values())]


@pytest.fixture(scope="module")
def wanted(little_to_compile):
    torch.set_num_threads(1)  # a number that is compiled in
    return train(Net(), 3)


def check(found, wanted):
    assert len(found) == len(wanted)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.filterwarnings("error::coop.UnknownOperatorWarning")
@pytest.mark.parametrize("is_compiled_before", [True, False])
def test_a_compiled_part_is_trained(wanted, is_compiled_before):
    if not is_compiled_before:
        torch._dynamo.reset()
    with _plugin.budget(16 << 20, stress=True, small_limit=0):
        check(train(Net(), 3), wanted)
        assert _plugin.stats()["replays"] > 0
        torch.ops.coop.validate()
    check(train(Net(), 3), wanted)  # and as if nothing had been


def test_it_cannot_be_registered():
    with pytest.raises(ValueError, match="cannot be run again"):
        coop.register("coop_compiled::run")


def test_a_model_that_was_exported_can_be_relied_on():
    """Who traces a program asks for storages, but only how large they are and who shares them."""
    with _plugin.budget(16 << 20, stress=True, small_limit=0):
        model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh())
        exported = torch.export.export(model, (torch.ones(64, 32),)).module()
        x = torch.arange(64 * 32.0).view(64, 32).sin()
        y = model(x)
        assert not torch.ops.coop.is_resident(y)
        assert torch.equal(exported(x), y)
