"""Goes on where it was, up to a step: with_checkpoints.py LAST_STEP"""

import sys
from pathlib import Path

import torch
from layers import batches, loss_of, network

FILE = Path("checkpoint.pt")

model = network()
optimizer = torch.optim.Adam(model.parameters())
first = 0
if FILE.exists():
    saved = torch.load(FILE)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["random"])
    first = saved["step"]
for step in range(first, int(sys.argv[1])):
    optimizer.zero_grad()
    loss_of(model, *batches(1)).backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({"step": step + 1, "random": torch.get_rng_state(), **state}, FILE)
