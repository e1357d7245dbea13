"""Tools that make the batch smaller until it fits know our error for what it is."""

import gc

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from torch import nn  # noqa: E402

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_lives_on():
    yield
    gc.collect()


def test_tools_that_look_for_words_find_them():
    """accelerate 1.15 and lightning 2.6 know the error of the CPU's allocator by these."""
    with coop.budget("1MiB"), pytest.raises(coop.OutOfMemory) as caught:
        torch.zeros(MIB)
    assert isinstance(caught.value, RuntimeError)
    (text,) = caught.value.args
    assert "DefaultCPUAllocator: can't allocate memory" in text


def network():
    return nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))


def test_accelerate_finds_a_batch_size():
    memory = pytest.importorskip("accelerate.utils.memory", reason="accelerate is not installed")
    model, tried = network(), []

    @memory.find_executable_batch_size(starting_batch_size=4096)
    @coop.budget("2MiB")
    def run(batch):
        tried.append(batch)
        rows = torch.randn(batch, 256)  # nearly all that it takes
        model(rows[:64, :64]).square().mean().backward()
        return batch

    assert run() == tried[-1] < tried[0]


class Rows(torch.utils.data.Dataset):
    """Nearly all that the network takes: a batch of them fits or does not, and it is soon told."""

    def __len__(self):
        return 256

    def __getitem__(self, index):
        return {"inputs": torch.full((4096,), index / 256), "labels": torch.tensor(index % 2)}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4096, 2)

    def forward(self, inputs, labels):
        return {"loss": nn.functional.cross_entropy(self.layer(inputs), labels)}


def test_the_trainer_of_transformers_finds_a_batch_size(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=128,
        auto_find_batch_size=True,
        max_steps=3,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
    )
    model = Classifier()
    with coop.budget("5MiB"):
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Rows())
        assert trainer.train().global_step == 3
        assert trainer._train_batch_size < 128
    del trainer


def test_lightning_scales_the_batch_size(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")
    from lightning.pytorch.tuner import Tuner

    data = torch.utils.data.TensorDataset(torch.randn(4000, 64))

    class Model(lightning.LightningModule):
        def __init__(self, batch_size=64):
            super().__init__()
            self.save_hyperparameters()
            self.network = network()

        def training_step(self, batch, _):
            return self.network(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

        def train_dataloader(self):
            return torch.utils.data.DataLoader(data, batch_size=self.hparams.batch_size)

    with coop.budget("3MiB"):
        trainer = lightning.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            default_root_dir=tmp_path,
        )
        found = Tuner(trainer).scale_batch_size(Model(), mode="power", init_val=64, max_trials=8)
        assert 64 <= found < 4000
