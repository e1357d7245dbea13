"""A small network for compute-sanitizer, which makes every kernel many times slower.

usage: python tests/python/gpu/sanitized.py --plain FILE
       compute-sanitizer --tool memcheck python tests/python/gpu/sanitized.py FILE SHARE

First plain PyTorch says what it makes, and how much memory it takes for that. Then the same inside
a share of it, say 0.6, compared. Under compute-sanitizer PyTorch lets go of hardly any activation,
with coop or without. So there is a process for each; and parameters are not updated, since whatever
was made from them and still lives would have to be there before.
"""

import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
os.environ.setdefault("CUBLASLT_WORKSPACE_SIZE", "64")

import coop
import torch
from coop import _plugin
from torch import nn

BATCHES = 5
BLOCKS = 8


def block():
    return [
        nn.Conv2d(8, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.Dropout(0.1),
        nn.ReLU(inplace=True),
    ]


def train():
    """Many layers of one size: no operator holds much of the peak by itself."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        *(layer for _ in range(BLOCKS) for layer in block()),
        nn.AvgPool2d(4),
        nn.Flatten(2),
        nn.TransformerEncoderLayer(64, 4, 64, batch_first=True),
        nn.Flatten(),
        nn.Linear(8 * 64, 10),
    )
    losses = []
    for _ in range(BATCHES):
        loss = model(torch.randn(256, 3, 32, 32)).square().mean()
        loss.backward()
        losses.append(loss.detach())
    gradients = [it.grad for it in model.parameters()]
    return [it.cpu() for it in (*losses, *gradients, *model.buffers())]


def main():
    torch.use_deterministic_algorithms(True)
    torch.set_default_device("cuda")
    if sys.argv[1] == "--plain":
        torch.save((train(), torch.cuda.max_memory_allocated()), sys.argv[2])
        return
    file, share = sys.argv[1], float(sys.argv[2])
    plain, peak = torch.load(file, map_location="cpu")
    with coop.budget(int(share * peak), device="cuda"):
        made = train()
        replays = _plugin.stats()["replays"]
    same = all(torch.equal(a, b) for a, b in zip(plain, made, strict=True))
    words = "equal" if same else "NOT EQUAL"
    print(f"{share:.0%} of {peak >> 20} MiB: {replays} replays, {words}")
    sys.exit(not same or replays == 0)


main()
