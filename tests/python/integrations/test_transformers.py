"""The Trainer of transformers, with a callback and under `coop run`."""

import gc
import json
import logging
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

import coop  # noqa: E402
from coop.integrations.transformers import CoopCallback  # noqa: E402
from transformers_trainer import make_trainer  # noqa: E402

from examples import assert_same, load, run_example  # noqa: E402

BUDGET = "30MiB"
TIMES = re.compile(r"'train_(runtime|\w+_per_second)': '[^']*'")
OURS = re.compile(r", 'coop/\w+': (\d+|'[^']*')")


@pytest.fixture(autouse=True)
def nothing_lives_on():
    yield
    gc.collect()  # a Trainer is in circles
    assert not torch.ops.coop.has_budget()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return run_example(tmp_path_factory.mktemp("runs"), "transformers_trainer.py", BUDGET)


def log_of(checkpoint):
    return json.loads((checkpoint / "trainer_state.json").read_text())["log_history"]


def assert_same_checkpoint(one, other):
    for name in ("model.safetensors", "config.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        assert_same(load(one / name), load(other / name))


def test_the_same_log_and_progress(runs):
    plain = TIMES.sub("", runs.plain.out)
    assert plain.count("'loss'") == 6
    assert TIMES.sub("", runs.under.out) == plain
    assert OURS.sub("", TIMES.sub("", runs.inside.out)).startswith(plain)
    assert len(OURS.findall(runs.inside.out)) == 7 * 4
    for each in (runs.plain, runs.inside, runs.under):
        assert each.err.count("| 6/6 [") >= 1
        assert "| 3/6 [" in each.err
        assert "Warning" not in each.err
    assert len(runs.under.lines) == 5


def test_the_same_losses_and_checkpoints(runs):
    plain, *others = runs.folders()
    for each in others:
        for step in (3, 6):
            assert_same_checkpoint(each / f"checkpoint-{step}", plain / f"checkpoint-{step}")
        wanted, got = log_of(plain / "checkpoint-6"), log_of(each / "checkpoint-6")
        assert [it["loss"] for it in got] == [it["loss"] for it in wanted]
        assert len(got) == 6


def test_what_is_logged(runs):
    """Also into the file, where a run that is resumed finds it."""
    log = log_of(runs.folders()[1] / "checkpoint-6")
    names = ("peak_bytes", "evictions", "recomputations", "recomputing_seconds")
    for each in log:
        assert {it for it in each if it.startswith("coop/")} == {f"coop/{it}" for it in names}
        assert 0 < each["coop/peak_bytes"] <= 30 << 20
        assert each["coop/recomputations"] >= 0
    assert sum(it["coop/evictions"] for it in log) > 0


def test_checkpoints_are_resumed_inside_and_outside(runs, tmp_path):
    plain, _, under = runs.folders()
    make_trainer(tmp_path / "outside").train(str(under / "checkpoint-3"))
    trainer = make_trainer(tmp_path / "inside", callbacks=[CoopCallback(BUDGET)])
    trainer.train(str(plain / "checkpoint-3"))
    assert coop.stats().evictions > 0
    assert not any("coop" in name for it in trainer.state.log_history for name in it)
    for name in ("inside", "outside"):
        assert_same_checkpoint(tmp_path / name / "checkpoint-6", plain / "checkpoint-6")


def test_out_of_memory_ends_in_advice(tmp_path):
    trainer = make_trainer(tmp_path, callbacks=[CoopCallback("6MiB")])
    with pytest.raises(torch.OutOfMemoryError) as caught:
        trainer.train()
    assert "What would help:\n  - coop.budget(" in str(caught.value)
    assert not torch.ops.coop.has_budget()
    trainer.callback_handler.pop_callback(CoopCallback)
    assert trainer.train().global_step == 6  # it is as good as new


class Stops(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        assert torch.ops.coop.has_budget()
        if state.global_step == 2:
            raise KeyboardInterrupt


def test_it_is_over_however_training_ends(tmp_path):
    trainer = make_trainer(tmp_path, callbacks=[CoopCallback(BUDGET), Stops()])
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            trainer.train()
        assert not torch.ops.coop.has_budget()


class FailsOnce(transformers.TrainerCallback):
    has_failed = False

    def on_step_end(self, args, state, control, **kwargs):
        if not self.has_failed:
            self.has_failed = True
            torch.zeros(1 << 40)


def test_training_that_begins_anew_goes_on_in_its_budget(tmp_path, caplog):
    """As it does with a smaller batch; tests/python/plugin/test_batch_size_finders.py finds one."""
    trainer = make_trainer(tmp_path, steps=2, callbacks=[CoopCallback(BUDGET), FailsOnce()])
    trainer.args.auto_find_batch_size = True
    with caplog.at_level(logging.INFO, "coop"):
        assert trainer.train().global_step == 2
    assert trainer._train_batch_size < 32
    said = [it.getMessage() for it in caplog.records if it.name == "coop"]
    assert [" begins: " in it for it in said] == [True, False], said
    assert " ends: " in said[1]


def test_what_is_misspelt_is_told_at_once():
    with pytest.raises(TypeError, match="max_slodown"):
        CoopCallback("8GiB", max_slodown=2)
    with pytest.raises(TypeError, match="size"):
        CoopCallback()
