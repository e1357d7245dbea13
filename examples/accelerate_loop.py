"""A loop with Hugging Face's accelerate.

python examples/accelerate_loop.py                                PyTorch alone
python examples/accelerate_loop.py --budget 15MiB                 inside a budget
coop run --budget 15MiB examples/accelerate_loop.py               the same, without a line of it
coop run --budget 15MiB accelerate launch --cpu examples/accelerate_loop.py
"""

import argparse
from contextlib import nullcontext

import coop
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def train(folder: str, resume: str | None = None) -> None:
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    layers = [it for _ in range(8) for it in (nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1))]
    model = nn.Sequential(*layers, nn.Linear(128, 10))
    data = TensorDataset(torch.randn(8192, 128), torch.randint(10, (8192,)))
    model, optimizer, loader = accelerator.prepare(
        model,
        torch.optim.AdamW(model.parameters(), lr=1e-3),
        DataLoader(data, batch_size=1024),
    )
    if resume:
        accelerator.load_state(resume)
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(f"loss {loss.item()!r}")
    accelerator.save_state(folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", help="such as 15MiB; without it, PyTorch alone")
    parser.add_argument("--folder", default="trained", help="for what is saved at the end")
    parser.add_argument("--resume", metavar="FOLDER", help="that was saved before")
    options = parser.parse_args()
    with coop.budget(options.budget) if options.budget else nullcontext():
        train(options.folder, options.resume)
    if options.budget:
        print(coop.stats())


if __name__ == "__main__":
    main()
