"""One of two processes that train together over gloo: ddp.py RANK FOLDER plain|stress|tight"""

import gc
import sys
from contextlib import nullcontext
from pathlib import Path

import torch
from coop import _plugin
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 5
VARIANTS = (
    {},
    {"gradient_as_bucket_view": True},
    {"find_unused_parameters": True, "broadcast_buffers": False},
    {"static_graph": True, "gradient_as_bucket_view": True},
)


def train(rank: int, **options) -> dict:
    torch.manual_seed(5)
    hidden = [it for _ in range(4) for it in (nn.Linear(64, 64), nn.Tanh())]
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), *hidden, nn.Linear(64, 4)),
        bucket_cap_mb=0.02,
        **options,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(rank)
    losses = []
    for step in range(STEPS):
        is_alone = step == 2 and not options
        with model.no_sync() if is_alone else nullcontext():
            loss = model(torch.randn(1024, 32)).square().mean()
            loss.backward()
        losses.append(loss.detach())
        if is_alone:
            continue
        optimizer.step()
        if step < STEPS - 1:
            optimizer.zero_grad()
    gradients = {f"{name}.grad": p.grad for name, p in model.named_parameters()}
    total = torch.stack(losses)
    distributed.all_reduce(total)
    state = {
        f"{name}.{index}": it
        for index, of_one in enumerate(optimizer.state.values())
        for name, it in of_one.items()
    }
    return {
        "losses": torch.stack(losses),
        "total": total,
        "random state": torch.get_rng_state(),
        **model.state_dict(),
        **gradients,
        **state,
    }


def main(rank: int, folder: Path, how: str) -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting-{how}", rank=rank, world_size=2
    )
    budgets = {
        "plain": nullcontext,
        "stress": lambda: _plugin.budget(64 << 20, stress=True, small_limit=0),
        "tight": lambda: _plugin.budget(2000 << 10, small_limit=4096),
    }
    result = []
    evictions = 0
    for options in VARIANTS:
        with budgets[how]():
            made = train(rank, **options)
            gc.collect()  # DDP is in circles
            if how != "plain":
                evictions += _plugin.stats()["evictions"]
        # Copies, outside: what lies in the pool would count in the next budget.
        result.append({name: it.clone() for name, it in made.items()})
        del made
    assert how == "plain" or evictions > 0
    torch.save(result, folder / f"{how}-{rank}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
