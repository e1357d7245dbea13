"""A small network for compute-sanitizer, which makes every kernel many times slower.

usage: python tests/python/gpu/sanitized.py --plain FILE
       compute-sanitizer --tool memcheck python tests/python/gpu/sanitized.py FILE

First plain PyTorch says what it makes, and how much memory it takes for that. Then the same inside
eight tenths of that, compared. (Two processes: under compute-sanitizer plain PyTorch lets go of no
activations.)
"""

import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
os.environ.setdefault("CUBLASLT_WORKSPACE_SIZE", "64")

import coop
import torch
from coop import _plugin
from torch import nn

STEPS = 5


def train():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.Dropout(0.1),
        nn.ReLU(inplace=True),
        nn.Flatten(2),
        nn.TransformerEncoderLayer(256, 4, 256, batch_first=True),
        nn.Flatten(),
        nn.Linear(16 * 256, 10),
    )
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(256, 3, 16, 16)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [it.cpu() for it in (*losses, *model.state_dict().values())]


def main():
    file, is_plain = sys.argv[-1], "--plain" in sys.argv
    torch.use_deterministic_algorithms(True)
    torch.set_default_device("cuda")
    if is_plain:
        torch.save((train(), torch.cuda.max_memory_allocated()), file)
        return
    plain, peak = torch.load(file, map_location="cpu")
    with coop.budget(int(0.8 * peak), device="cuda"):
        made = train()
        replays = _plugin.stats()["replays"]
    same = all(torch.equal(a, b) for a, b in zip(plain, made, strict=True))
    print(f"peak {peak >> 10} KiB, {replays} replays, {'equal' if same else 'NOT EQUAL'}")
    sys.exit(not same or replays == 0)


main()
