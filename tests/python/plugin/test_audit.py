"""Operators are run again at once, over copies, and looked at: what coop takes them for is true."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402
from torch.nn import functional  # noqa: E402
from training import Training, adam, assert_same, cnn, fused_adam, mlp, run, sgd  # noqa: E402

MIB = 1 << 20


def audit(nbytes=64 * MIB):
    return _plugin.budget(nbytes, audit=True, small_limit=0)


# Such operators count as known, so that what they do besides is a lie.
LIBRARY = torch.library.Library("aten", "FRAGMENT")
kept = torch.zeros(1)


def lie(name, signature="(Tensor x) -> Tensor"):
    LIBRARY.define(f"_coop_test_{name}{signature}")

    def decorate(function):
        LIBRARY.impl(f"_coop_test_{name}", function, "CPU")
        return getattr(torch.ops.aten, f"_coop_test_{name}")

    return decorate


@lie("writes")
def writes(x):
    x.add_(1)
    return x * 2


@lie("counts")
def counts(x):
    kept.add_(1)
    return x + kept


@lie("draws")
def draws(x):
    return x + torch.rand(())


@lie("shares")
def shares(x):
    return torch.from_dlpack(x)


@lie("writes_late", "(Tensor(a!) x) -> Tensor(a!)")
def writes_late(x):
    kept.add_(1)
    return x.add_(kept)


@lie("is_honest")
def is_honest(x):
    return x.sin() + 1


@pytest.mark.parametrize(
    ("liar", "finding"),
    [
        (writes, "_coop_test_writes writes an argument that its schema does not name"),
        (counts, "_coop_test_counts makes something else as result 0"),
        (shares, "_coop_test_shares returns memory that another storage has"),
        (draws, "_coop_test_draws draws random numbers"),
        (writes_late, "_coop_test_writes_late writes something else into an argument"),
    ],
)
def test_a_lie_is_found_and_named(liar, finding):
    x = torch.arange(100.0)
    with pytest.raises(RuntimeError, match=finding), audit():
        liar(x + 1)


def test_what_is_true_is_not_found_fault_with():
    with audit():
        y = is_honest(torch.arange(100.0))
    assert torch.equal(y, torch.arange(100.0).sin() + 1)


def test_a_finding_does_not_end_the_program():
    with pytest.raises(RuntimeError, match="audit"), audit():
        y = counts(torch.zeros(1000))
        z = y + 1
    assert torch.equal(z, y + 1)


TRAININGS = {
    "mlp-adam": Training(mlp, (32, 64), adam, steps=2),
    "mlp-fused-adam": Training(mlp, (32, 64), fused_adam, steps=2),
    "cnn-sgd": Training(cnn, (4, 3, 16, 16), sgd, steps=2),
    "cnn-inside": Training(cnn, (4, 3, 16, 16), adam, steps=2, model_is_older=False),
}


@pytest.mark.parametrize("training", TRAININGS.values(), ids=TRAININGS.keys())
def test_training(training):
    plain = run(training)
    audited = run(training, audit())
    assert_same(plain, audited)
    assert audited.stats["evictions"] == 0


def recurrent():
    return torch.nn.LSTM(16, 16, 2, batch_first=True), torch.randn(4, 8, 16)


def attention():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return layer, torch.randn(2, 10, 32)


def convolutions():
    return cnn(), torch.randn(4, 3, 16, 16)


@pytest.mark.parametrize("model", [recurrent, attention, convolutions])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("is_autocast", [False, True])
def test_models(model, mode, is_autocast):
    def outputs(budget):
        torch.manual_seed(3)
        layer, x = model()
        with budget, mode(), torch.autocast("cpu", torch.bfloat16, enabled=is_autocast):
            y = layer(x)
            y = y[0] if isinstance(y, tuple) else y
            if y.requires_grad:
                functional.mse_loss(y.float(), torch.zeros_like(y, dtype=torch.float)).backward()
        return y, *(p.grad for p in layer.parameters() if p.grad is not None)

    try:
        plain = outputs(torch.enable_grad())
    except RuntimeError as error:
        if not is_autocast:
            raise
        pytest.skip(f"PyTorch has no bfloat16 for it on this processor: {error}")
    audited = outputs(audit())
    assert all(torch.equal(a, b) for a, b in zip(plain, audited, strict=True))
