"""The Trainer of Lightning, with a callback and under `coop run`."""

import csv
import gc
import re
import signal

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

import coop  # noqa: E402
from coop.integrations.lightning import CoopCallback  # noqa: E402
from lightning_callback import train  # noqa: E402

from examples import assert_same, load, run_example  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:::(pytorch_)?lightning")  # its own

BUDGET = "10MiB"
THIRD, SIXTH = "checkpoints/step=3.ckpt", "checkpoints/step=6.ckpt"
BAR = re.compile(r"━+|[\d.]+it/s|\d+:\d\d:\d\d| +")


@pytest.fixture(autouse=True)
def nothing_lives_on():
    yield
    gc.collect()
    assert not torch.ops.coop.has_budget()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return run_example(tmp_path_factory.mktemp("runs"), "lightning_callback.py", BUDGET)


def losses_of(folder):
    with (folder / "metrics.csv").open() as file:
        return [row["loss"] for row in csv.DictReader(file) if row["loss"]]


def assert_same_checkpoint(one, other):
    one, other = load(one), load(other)
    for name in ("state_dict", "optimizer_states", "lr_schedulers", "global_step", "loops"):
        assert_same(one[name], other[name])


def test_the_same_progress(runs):
    plain = BAR.sub(" ", runs.plain.out)
    assert "Epoch 1/-2" in plain
    assert "loss: 2.3" in plain
    assert BAR.sub(" ", runs.under.out) == plain
    assert BAR.sub(" ", runs.inside.out).startswith(plain.rstrip())
    assert len(runs.under.lines) == 5


def test_the_same_losses_and_checkpoints(runs):
    plain, *others = runs.folders()
    assert len(losses_of(plain)) == 6
    for each in others:
        assert losses_of(each) == losses_of(plain)
        for name in (THIRD, SIXTH):
            assert_same_checkpoint(each / name, plain / name)


def test_what_is_logged(runs):
    _, inside, under = runs.folders()
    with (inside / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["coop/evictions"]]
    assert [row["step"] for row in rows] == [str(step) for step in range(6)]
    assert sum(int(row["coop/evictions"]) for row in rows) > 0
    assert all(0 < int(row["coop/peak_bytes"]) <= 10 << 20 for row in rows)
    assert "coop" not in (under / "metrics.csv").read_text()


def test_checkpoints_are_resumed_inside_and_outside(runs, tmp_path):
    plain, _, under = runs.folders()
    train(tmp_path / "wanted", resume=plain / THIRD)
    train(tmp_path / "outside", resume=under / THIRD)
    train(tmp_path / "inside", resume=plain / THIRD, callbacks=[CoopCallback(BUDGET)])
    assert coop.stats().evictions > 0
    for name in ("inside", "outside"):
        assert_same_checkpoint(tmp_path / name / SIXTH, tmp_path / "wanted" / SIXTH)


def test_out_of_memory_ends_in_advice(tmp_path):
    callback = CoopCallback("4MiB")
    with pytest.raises(torch.OutOfMemoryError) as caught:
        train(tmp_path, callbacks=[callback])
    assert "What would help:\n  - coop.budget(" in str(caught.value)
    assert not torch.ops.coop.has_budget()


class Stops(lightning.Callback):
    def __init__(self, error):
        self.error = error

    def on_train_batch_end(self, *_):
        assert torch.ops.coop.has_budget()
        raise self.error


@pytest.fixture
def ctrl_c():
    """Lightning is deaf to it once it has heard it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_it_is_over_however_training_ends(tmp_path, error, ctrl_c):
    with pytest.raises(SystemExit if error is KeyboardInterrupt else error):
        train(tmp_path, callbacks=[CoopCallback(BUDGET), Stops(error)])
    assert not torch.ops.coop.has_budget()


def test_its_tuner_is_inside(tmp_path):
    """It is a callback itself, and comes before all others."""
    from lightning.pytorch.demos.boring_classes import BoringModel
    from lightning.pytorch.tuner import Tuner

    sizes = []

    class Model(BoringModel):
        batch_size = 2

        def training_step(self, batch, index):
            assert torch.ops.coop.has_budget()
            sizes.append(self.batch_size)
            return super().training_step(batch, index)

        def train_dataloader(self):
            rows = torch.randn(64, 32)
            return torch.utils.data.DataLoader(rows, batch_size=self.batch_size)

    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        callbacks=[CoopCallback(BUDGET)],
        default_root_dir=tmp_path,
    )
    Tuner(trainer).scale_batch_size(Model(), max_trials=2, steps_per_trial=1)
    assert len(set(sizes)) == 2


def test_its_other_name(tmp_path):
    """`pytorch_lightning` is the same again, with classes of its own."""
    other = pytest.importorskip("pytorch_lightning", reason="pytorch-lightning is not installed")
    from pytorch_lightning.demos.boring_classes import BoringModel

    class Model(BoringModel):
        def training_step(self, batch, index):
            assert torch.ops.coop.has_budget()
            return super().training_step(batch, index)

    trainer = other.Trainer(
        accelerator="cpu",
        max_steps=2,
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        callbacks=[CoopCallback(BUDGET, log=True)],
        default_root_dir=tmp_path,
    )
    trainer.fit(Model())
    assert trainer.global_step == 2


def test_what_is_misspelt_is_told_at_once():
    with pytest.raises(TypeError, match="max_slodown"):
        CoopCallback("8GiB", max_slodown=2)
