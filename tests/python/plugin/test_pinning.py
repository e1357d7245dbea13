"""Tensors and modules that stay where they are."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402
from torch import nn  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20


def is_resident(tensor):
    return torch.ops.coop.is_resident(tensor)


def test_a_pinned_tensor_stays():
    with _plugin.budget(16 * MIB, stress=True, small_limit=0):
        x = torch.arange(64.0 * KIB)
        y, z = x * 2, x * 3
        assert coop.pin(y) is y
        address = torch._C.TensorBase.data_ptr(y)
        w = y + 1  # can still be made again from it
        assert not is_resident(w)
        assert not is_resident(z)
        assert is_resident(y)
        y.add_(1)
        assert torch._C.TensorBase.data_ptr(y) == address
        assert torch.equal(w, x * 2 + 1)
        coop.pin(y, is_written_elsewhere=True)
        assert is_resident(y * 2)


def test_a_pinned_module_stays():
    with coop.budget("16MiB", stress=True):
        model = nn.Sequential(nn.Linear(256, 256), nn.BatchNorm1d(256))
        assert coop.pin(model) is model
        addresses = [t.data_ptr() for t in model.state_dict().values()]
        model(torch.randn(64, 256)).sum().backward()
        assert addresses == [t.data_ptr() for t in model.state_dict().values()]


def test_what_cannot_be_pinned():
    with coop.budget("16MiB"), pytest.raises(TypeError, match="a tensor or a module"):
        coop.pin([torch.ones(3)])
    with pytest.raises(RuntimeError, match="only inside a budget"):
        coop.pin(torch.ones(3))
