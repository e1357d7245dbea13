"""Tensors that are more than memory with a shape, and code that handles operators itself."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

MIB = 1 << 20


def stress(nbytes=16 * MIB):
    return _plugin.budget(nbytes, stress=True, small_limit=0)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_the_values_of_a_sparse_tensor_are_written(convert):
    with stress():
        matrix = convert(torch.ones(64, 64))
        values = matrix.values() if matrix.layout == torch.sparse_csr else matrix._values()
        y = values * 2
        matrix.neg_()
        assert y[0].item() == 2
        assert values[0].item() == -1
    assert matrix.to_dense()[3, 3].item() == -1  # it outlives the scope


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_the_values_of_a_sparse_tensor_are_made_again():
    indices = torch.arange(1000).repeat(2, 1)
    with stress():
        values = torch.arange(1000.0) + 1
        matrix = torch.sparse_coo_tensor(indices, values, (1000, 1000), check_invariants=False)
        assert not torch.ops.coop.is_resident(values)
        assert (matrix @ torch.ones(1000, 1)).sum().item() == 500 * 1001


class Writing(TorchDispatchMode):
    """Adds one to a tensor whenever an operator runs."""

    def __init__(self, written):
        super().__init__()
        self.written = written

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.written.add_(1)
        return function(*args, **(kwargs or {}))


def test_a_mode_writes():
    with stress():
        x = torch.zeros(5000)
        y = x * 2
        with Writing(x):
            z = y + 1
        assert not y.any()
        assert x[0].item() == 1
        assert z[0].item() == 1
        assert not torch.ops.coop.is_resident(z)  # seen, and made again


def test_a_subclass_writes():
    with stress():
        a, b = torch.zeros(5000), torch.zeros(5000) + 0
        y, z = a * 2, b * 2
        TwoTensor(a, b).add_(1)
        assert not y.any()
        assert not z.any()
        assert b[0].item() == 1


def test_the_same_kernels_under_a_mode():
    """Some have one for any backend besides the CPU's own, with other bits."""
    x = torch.randn(8, 6, 10, 10)
    wanted = torch.nn.functional.group_norm(x, 3)
    with stress(), Writing(torch.zeros(1)):
        assert torch.equal(torch.nn.functional.group_norm(x, 3), wanted)


def test_a_fake_tensor_has_no_address_to_take():
    with stress(), FakeTensorMode():
        assert torch.nn.Linear(3, 4)(torch.empty(2, 3)).untyped_storage().nbytes() == 2 * 4 * 4
