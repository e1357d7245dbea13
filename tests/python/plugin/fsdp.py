"""One of two processes that share parameters, over gloo: fsdp.py RANK FOLDER

It ends with an error if under stress they do not train as without coop, to the bit.
"""

import gc
import sys
from pathlib import Path

import torch
from coop import _plugin
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard


def shard_flat(model: nn.Sequential, **options) -> nn.Module:
    return FullyShardedDataParallel(
        model,
        device_id=torch.device("cpu"),
        auto_wrap_policy=lambda module, recurse, **_: recurse or isinstance(module, nn.Sequential),
        use_orig_params=True,
        **options,
    )


def shard_gradients(model: nn.Sequential) -> nn.Module:
    return shard_flat(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)


def shard_each(model: nn.Sequential) -> nn.Module:
    mesh = init_device_mesh("cpu", (2,))
    for part in (*model, model):
        fully_shard(part, mesh=mesh)
    return model


def train(rank: int, shard, rows: int) -> dict:
    torch.manual_seed(5)
    hidden = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)]
    model = shard(nn.Sequential(*hidden, nn.Linear(64, 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False)
    torch.manual_seed(rank)
    losses = []
    for _ in range(2):
        loss = model(torch.randn(rows, 64)).square().mean()
        loss.backward()
        losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
    local = {
        name: it.to_local() if hasattr(it, "to_local") else it
        for name, it in model.named_parameters()
    }
    return {"losses": torch.stack(losses)} | {n: it.detach().clone() for n, it in local.items()}


def main(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    stress = _plugin.budget(64 << 20, stress=True, small_limit=0)
    tight = _plugin.budget(2150 << 10, small_limit=4096)  # weights stay: enough can be evicted
    for shard, rows, budget in (
        (shard_flat, 128, stress),
        (shard_each, 128, stress),
        (shard_gradients, 1024, tight),
    ):
        wanted = train(rank, shard, rows)
        with budget:
            trained = train(rank, shard, rows)
            gc.collect()
            assert _plugin.stats()["evictions"] > 0
        assert trained.keys() == wanted.keys()
        assert all(torch.equal(trained[name], wanted[name]) for name in wanted), shard
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
