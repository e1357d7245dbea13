"""Custom operators: kept unless the program answers for them."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402

MIB = 1 << 20


def stress(nbytes=16 * MIB):
    return _plugin.budget(nbytes, stress=True, small_limit=0)


def is_resident(tensor):
    return torch.ops.coop.is_resident(tensor)


@torch.library.custom_op("coop_test::half", mutates_args=())
def half(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(x) / 2


@torch.library.custom_op("coop_test::shuffled", mutates_args=())
def shuffled(x: torch.Tensor) -> torch.Tensor:
    return x[torch.randperm(len(x))] + torch.rand_like(x)


@torch.library.custom_op("coop_test::halve_", mutates_args={"x"})
def halve_(x: torch.Tensor) -> None:
    x.numpy()[:] /= 2


@torch.library.custom_op("coop_test::through_numpy", mutates_args=())
def through_numpy(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2) + 1


@torch.library.custom_op("coop_test::never_registered", mutates_args=())
def never_registered(x: torch.Tensor) -> torch.Tensor:
    return x * 2


half.register_autograd(
    lambda ctx, grad: grad * -torch.sin(ctx.saved_tensors[0]) / 2,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


@pytest.fixture(autouse=True, scope="module")
def registered():
    coop.register(half)
    coop.register("coop_test::shuffled", random=True)
    coop.register(torch.ops.coop_test.halve_)
    coop.register(torch.ops.coop_test.through_numpy.default)


@pytest.mark.parametrize("operator", [half, through_numpy])
def test_a_registered_operator_is_evicted_and_run_again(operator):
    x = torch.randn(5000)
    wanted = operator(x)
    with stress():
        y = operator(x + 0)
        assert not is_resident(y)
        assert torch.equal(y, wanted)
        assert torch.equal(y + 1, wanted + 1)
    assert coop.stats().by_op
    assert operator._qualname in {each.op for each in coop.stats().by_op}
    assert torch.equal(y, wanted)


def test_its_gradients_are_the_same():
    x = torch.randn(5000, requires_grad=True)
    half(x.tanh()).square().sum().backward()
    wanted, x.grad = x.grad, None
    with stress():
        half(x.tanh()).square().sum().backward()
    assert torch.equal(x.grad, wanted)


def test_one_that_draws_numbers_draws_the_same_again():
    x = torch.randn(5000)
    torch.manual_seed(3)
    wanted, after = shuffled(x), torch.rand(3)
    torch.manual_seed(3)
    with stress():
        y = shuffled(x)
        assert not is_resident(y)
        assert torch.equal(y, wanted)
        assert torch.equal(torch.rand(3), after)


def test_one_that_writes_what_its_schema_says():
    with stress():
        x = torch.arange(5000.0)
        y = x + 1
        z = y * 2
        halve_(y)
        assert not is_resident(y)
        assert torch.equal(z, (torch.arange(5000.0) + 1) * 2)
        assert torch.equal(y, (torch.arange(5000.0) + 1) / 2)


def test_an_unknown_one_is_kept_and_the_program_is_told_once():
    with stress():
        x = torch.randn(5000) + 0
        with pytest.warns(coop.UnknownOperatorWarning) as told:
            y = never_registered(x)
            z = never_registered(x)
        assert is_resident(y)
        assert is_resident(z)
        assert torch.equal(y, x * 2)
    (warning,) = told
    text = str(warning.message)
    assert "coop_test::never_registered" in text
    assert 'coop.register("coop_test::never_registered")' in text
    assert "39.1 KiB" in text  # two of 5000 floats
    assert coop.stats().tainted_bytes["unknown operator"] >= y.nbytes + z.nbytes


def test_the_warning_is_silenced_as_any_other():
    @torch.library.custom_op("coop_test::silent", mutates_args=())
    def silent(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.library.custom_op("coop_test::loud", mutates_args=())
    def loud(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with stress(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", coop.UnknownOperatorWarning)
        silent(torch.ones(5000))
        warnings.simplefilter("error", coop.UnknownOperatorWarning)
        with pytest.raises(coop.UnknownOperatorWarning):
            loud(torch.ones(5000))
        assert loud(torch.ones(5000)).sum().item() == 10000
        torch.ops.coop.validate()


@pytest.mark.parametrize(
    ("op", "error", "says"),
    [
        ("coop_test::nobody", ValueError, "no operator 'coop_test::nobody'.*'myspace::myop'"),
        ("coop_test::half.other", ValueError, "no operator 'coop_test::half.other'"),
        ("nonsense", ValueError, "no operator 'nonsense'"),
        ("aten::add", ValueError, "aten::add is PyTorch's own"),
        (torch.add, TypeError, "a name like 'myspace::myop'"),
        (7, TypeError, "a name like 'myspace::myop'"),
    ],
)
def test_what_cannot_be_registered(op, error, says):
    with pytest.raises(error, match=says):
        coop.register(op)


def test_register_stands_above_a_definition():
    @coop.register
    @torch.library.custom_op("coop_test::decorated", mutates_args=())
    def decorated(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with stress():
        assert not is_resident(decorated(torch.randn(5000)))
