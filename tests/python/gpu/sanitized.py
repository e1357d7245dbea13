"""A small network for compute-sanitizer, which makes every kernel many times slower.

usage: python tests/python/gpu/sanitized.py --plain FILE
       compute-sanitizer --tool memcheck python tests/python/gpu/sanitized.py FILE

First plain PyTorch says what it makes, and how much memory it takes for that. Then the same inside
less and less of that, compared, until it does not fit any more, an error that is looked at, too.
(Two processes: under compute-sanitizer plain PyTorch lets go of no activations.)
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
SHARES = (0.95, 0.9, 0.85, 0.8)


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
    all_same, most_replays = True, 0
    for share in SHARES:
        try:
            with coop.budget(int(share * peak), device="cuda"):
                made = train()
                replays = _plugin.stats()["replays"]
        except torch.OutOfMemoryError as error:
            print(f"{share:.0%} of {peak >> 10} KiB: {str(error).splitlines()[0]}")
            break
        same = all(torch.equal(a, b) for a, b in zip(plain, made, strict=True))
        words = "equal" if same else "NOT EQUAL"
        print(f"{share:.0%} of {peak >> 10} KiB: {replays} replays, {words}")
        all_same, most_replays = all_same and same, max(most_replays, replays)
    sys.exit(not all_same or most_replays == 0)


main()
