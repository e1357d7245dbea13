"""A loop with accelerate, in a budget."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
pytest.importorskip("accelerate", reason="accelerate is not installed: make setup")

import coop  # noqa: E402
from accelerate_loop import train  # noqa: E402

from examples import assert_same, load, run_example  # noqa: E402

BUDGET = "15MiB"
LAUNCHER = ("accelerate", "launch", "--cpu", "--num_processes", "1")


def assert_same_state(one, other):
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    for name in ("optimizer.bin", "random_states_0.pkl"):
        assert_same(load(one / name), load(other / name))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return run_example(tmp_path_factory.mktemp("runs"), "accelerate_loop.py", BUDGET, LAUNCHER)


def test_the_same_losses(runs):
    runs.check_words()
    assert runs.plain.out.count("loss ") == 8


def test_the_same_checkpoints(runs):
    plain, *others = runs.folders()
    for each in others:
        assert_same_state(each, plain)


def test_checkpoints_are_resumed_inside_and_outside(runs, tmp_path):
    plain, _, under = runs.folders()
    train(str(tmp_path / "wanted"), resume=str(plain))
    train(str(tmp_path / "outside"), resume=str(under))
    with coop.budget(BUDGET):
        train(str(tmp_path / "inside"), resume=str(plain))
    assert coop.stats().evictions > 0
    for name in ("inside", "outside"):
        assert_same_state(tmp_path / name, tmp_path / "wanted")


def test_out_of_memory_ends_in_advice(tmp_path):
    with coop.budget("6MiB"), pytest.raises(torch.OutOfMemoryError) as caught:
        train(str(tmp_path))
    assert "What would help:\n  - coop.budget(" in str(caught.value)
