"""A loop of your own.

python examples/plain_loop.py                    PyTorch alone
python examples/plain_loop.py --budget 11MiB     inside a budget
coop run --budget 11MiB examples/plain_loop.py   the same, without a line of it
"""

import argparse
from contextlib import nullcontext

import coop
import torch
from torch import nn
from torch.nn import functional


def train(steps: int) -> None:
    torch.manual_seed(0)
    layers = [it for _ in range(8) for it in (nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1))]
    model = nn.Sequential(*layers, nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, steps + 1):
        inputs, labels = torch.randn(1024, 128), torch.randint(10, (1024,))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print(f"step {step}, loss {loss.item()!r}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", help="such as 11MiB; without it, PyTorch alone")
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    with coop.budget(options.budget) if options.budget else nullcontext():
        train(options.steps)
    if options.budget:
        print(coop.stats())


if __name__ == "__main__":
    main()
