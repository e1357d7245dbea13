"""Options, and variables for PyTorch that must be set before it is imported."""

import argparse
import importlib.util
import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"
if importlib.util.find_spec("torch") is None:  # as many do before they import it
    sys.exit("pip install torch")

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--budget", help="the script's own, and no budget of memory")
parser.add_argument("--out", default="model.pt")
options = parser.parse_args()

torch.manual_seed(1)
layers = [it for _ in range(8) for it in (torch.nn.Linear(256, 256), torch.nn.Tanh())]
model = torch.nn.Sequential(*layers)
for _ in range(options.steps):
    model(torch.randn(1024, 256)).square().mean().backward()
for parameter in model.parameters():
    parameter.data -= 0.1 * parameter.grad
saved = {"model": model.state_dict(), "threads": torch.get_num_threads(), "budget": options.budget}
torch.save(saved, options.out)
