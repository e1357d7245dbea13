"""Several processes with DistributedDataParallel; each has the budget for itself.

torchrun --nproc-per-node 2 examples/ddp.py                          PyTorch alone
torchrun --nproc-per-node 2 examples/ddp.py --budget 10MiB           inside a budget
coop run --budget 10MiB torchrun --nproc-per-node 2 examples/ddp.py  without a line of it
"""

import argparse
from contextlib import nullcontext
from pathlib import Path

import coop
import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


def train(folder: Path, resume: Path | None, is_first: bool) -> None:
    torch.manual_seed(0)
    layers = [it for _ in range(8) for it in (nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1))]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(128, 10)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if resume:
        saved = torch.load(resume)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    torch.manual_seed(1 + distributed.get_rank())
    for step in range(1, 7):
        inputs, labels = torch.randn(1024, 128), torch.randint(10, (1024,))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        total = loss.detach()
        distributed.all_reduce(total)
        if is_first:
            print(f"step {step}, loss {total.item() / distributed.get_world_size()!r}")
    if is_first:
        folder.mkdir(parents=True, exist_ok=True)
        saved = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(saved, folder / "checkpoint.pt")
    # Nobody leaves before it is written; nor while gloo's threads have a tensor left to give back,
    # which ends a Python that is about to end with an abort.
    distributed.barrier()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", help="such as 10MiB, of each process")
    parser.add_argument("--folder", type=Path, default=Path("trained"), help="for the checkpoint")
    parser.add_argument("--resume", type=Path, metavar="CHECKPOINT", help="that was saved before")
    options = parser.parse_args()
    distributed.init_process_group("gloo")
    is_first = distributed.get_rank() == 0
    with coop.budget(options.budget) if options.budget else nullcontext():
        train(options.folder, options.resume, is_first)
    if options.budget and is_first:
        print(coop.stats())
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
