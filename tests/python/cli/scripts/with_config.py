"""Reads how to train from a file beside it, and writes text."""

import json
from pathlib import Path

import torch
from layers import batches, loss_of, network

config = json.loads(Path(__file__).with_name("config.json").read_text())
model = network(config["depth"])
optimizer = getattr(torch.optim, config["optimizer"])(model.parameters(), **config["arguments"])
for batch in batches(config["steps"]):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item()!r}")
with Path("weights.txt").open("w") as file:
    for name, value in model.state_dict().items():
        print(name, value.double().sum().item(), file=file)
