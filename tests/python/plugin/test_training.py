"""Training inside a budget leaves every number as it is without: bit for bit."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin
from training import (
    Training,
    adam,
    assert_same,
    cnn,
    deep_cnn,
    deep_mlp,
    fused_adam,
    mlp,
    run,
    sgd,
)

MIB = 1 << 20

TRAININGS = {
    "mlp-sgd": Training(mlp, (128, 64), sgd),
    "mlp-adam": Training(mlp, (128, 64), adam),
    "mlp-fused-adam": Training(mlp, (128, 64), fused_adam),
    "cnn-sgd": Training(cnn, (16, 3, 16, 16), sgd),
    "cnn-adam": Training(cnn, (16, 3, 16, 16), adam),
    "mlp-inside": Training(mlp, (128, 64), sgd, model_is_older=False),
    "cnn-inside": Training(cnn, (16, 3, 16, 16), adam, model_is_older=False),
}


@pytest.mark.parametrize("small_limit", [0, 64 << 10])
@pytest.mark.parametrize("training", TRAININGS.values(), ids=TRAININGS.keys())
def test_everything_is_evicted_after_every_operator(training, small_limit):
    plain = run(training)
    stressed = run(training, _plugin.budget(64 * MIB, stress=True, small_limit=small_limit))
    assert_same(plain, stressed)
    # It was not for lack of trying.
    stats = stressed.stats
    assert stats["evictions"] > 20 * training.steps
    assert stats["replays"] > 20 * training.steps
    assert stats["deepest_replay"] >= 5


# How much of what it would take is given. The network of linear layers needs more: gradients are
# evicted on the way back, and take half a pass to make again.
TIGHT = {
    "mlp-sgd": (Training(deep_mlp, (1024, 64), sgd), 0.8),
    "mlp-inside": (Training(deep_mlp, (1024, 64), adam, model_is_older=False), 0.8),
    "cnn-sgd": (Training(deep_cnn, (32, 3, 16, 16), sgd), 0.5),
    "cnn-inside": (Training(deep_cnn, (32, 3, 16, 16), adam, model_is_older=False), 0.5),
}


@pytest.mark.parametrize("policy", ["coop", "dtr"])
@pytest.mark.parametrize(("training", "share"), TIGHT.values(), ids=TIGHT.keys())
def test_a_tight_budget(training, share, policy):
    plain = run(training)
    roomy = run(training, _plugin.budget(64 * MIB, small_limit=4096, policy=policy))
    assert_same(plain, roomy)
    assert roomy.stats["evictions"] == 0

    budget = int(share * roomy.stats["peak_held_bytes"])
    tight = run(training, _plugin.budget(budget, small_limit=4096, policy=policy))
    assert_same(plain, tight)
    stats = tight.stats
    assert stats["peak_held_bytes"] <= stats["pool_bytes"] <= budget
    assert stats["evictions"] > training.steps
    assert stats["replays"] > training.steps


def test_many_steps_leave_what_few_leave():
    def after(steps):
        training = Training(cnn, (16, 3, 16, 16), adam, steps=steps)
        return run(training, _plugin.budget(64 * MIB, stress=True, small_limit=4096)).stats

    few, many = after(3), after(30)
    for name in ("calls", "storages", "foreign_storages", "raw_blocks", "held_bytes"):
        assert many[name] == few[name], name
