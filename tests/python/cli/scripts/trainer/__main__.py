"""A package: python -m trainer FILE"""

import sys

import torch

from . import __name__ as package
from .steps import step

torch.manual_seed(2)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(10)])
losses = [step(model, torch.randn(1024, 256)) for _ in range(3)]
names = [package, __name__, __package__, __spec__.name, sys.argv[1:]]
torch.save([losses, names, model.state_dict()], sys.argv[1])
