"""The Trainer of Lightning, with a small network and made-up data.

python examples/lightning_callback.py                    PyTorch alone
python examples/lightning_callback.py --budget 10MiB     a callback of coop's
coop run --budget 10MiB examples/lightning_callback.py   the same, without a line of it
"""

import argparse

import coop
import lightning.pytorch as lightning
import torch
from coop.integrations.lightning import CoopCallback
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Network(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        hidden = [it for _ in range(6) for it in (nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1))]
        self.layers = nn.Sequential(*hidden, nn.Linear(128, 10))

    def training_step(self, batch, _):
        inputs, labels = batch
        loss = functional.cross_entropy(self.layers(inputs), labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def train(folder: str, steps: int = 6, resume: str | None = None, callbacks=()) -> None:
    lightning.seed_everything(0, verbose=False)
    data = TensorDataset(torch.randn(4096, 128), torch.randint(10, (4096,)))
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=steps,
        log_every_n_steps=1,
        logger=CSVLogger(folder, name="", version=""),
        callbacks=[
            ModelCheckpoint(filename="{step}", every_n_train_steps=3, save_top_k=-1),
            *callbacks,
        ],
    )
    trainer.fit(Network(), DataLoader(data, batch_size=1024, shuffle=True), ckpt_path=resume)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", help="such as 10MiB; without it, PyTorch alone")
    parser.add_argument("--folder", default="trained", help="for checkpoints and the log")
    options = parser.parse_args()
    callbacks = [CoopCallback(options.budget, log=True)] if options.budget else []
    train(options.folder, callbacks=callbacks)
    if options.budget:
        print(coop.stats())


if __name__ == "__main__":
    main()
