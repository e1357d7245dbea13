"""PyTorch's own memory snapshots, with pools in them, and what draws them."""

import gc
import pickle

import coop
import pytest
import torch
from snapshots import blocks_of, check_events, check_viewers, in_pool
from torch import nn
from torch.cuda import memory

MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_history():
    yield
    memory._record_memory_history(None)
    gc.collect()


def train(steps):
    torch.manual_seed(0)
    layers = [it for _ in range(8) for it in (nn.Linear(512, 512), nn.GELU(), nn.Dropout(0.1))]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4096, 512, device="cuda")).square().mean().backward()
        optimizer.step()
    return model, optimizer


def pool_in(snapshot):
    """The largest: PyTorch's own are small here."""
    return max(snapshot["segments"], key=lambda it: it["total_size"])


def frames_of(entries):
    return {frame["filename"] for entry in entries for frame in entry.get("frames", ())}


def test_blocks_without_a_history():
    with coop.budget(256 * MIB, device="cuda"):
        tensors = [torch.ones(n, device="cuda") for n in (1 << 20, 7)]
        segment = pool_in(memory._snapshot())
        held = blocks_of(segment)
        for tensor in tensors:
            assert held[tensor.data_ptr()] >= tensor.nbytes
        assert sum(held.values()) == segment["allocated_size"]
        assert segment["device"] == torch.cuda.current_device()
        assert not any(memory._snapshot()["device_traces"])


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("stacks", ["python", "all"])
def test_a_history_is_drawn(tmp_path, is_before, stacks):
    """Whether it is asked for before the budget or inside."""
    if is_before:
        memory._record_memory_history(stacks=stacks)
    with coop.budget(144 * MIB, device="cuda"):
        if not is_before:
            memory._record_memory_history(stacks=stacks)
        kept = train(steps=4)
        assert coop.stats().evictions > 0
        memory._dump_snapshot(str(tmp_path / "inside.pickle"))
        snapshot = pickle.loads((tmp_path / "inside.pickle").read_bytes())
        segment = pool_in(snapshot)
        events = in_pool(snapshot["device_traces"][segment["device"]], segment)
        check_events(events, blocks_of(segment))
        taken = [it for it in events if it["action"] == "alloc"]
        assert len(taken) > 100
        assert any(name.endswith("test_gpu_snapshot.py") for name in frames_of(taken))
        held = [it for it in segment["blocks"] if it["state"] == "active_allocated"]
        assert any(name.endswith("test_gpu_snapshot.py") for name in frames_of(held))
        times = [it["time_us"] for it in snapshot["device_traces"][segment["device"]]]
        assert times == sorted(times)
        check_viewers(snapshot)
    del kept


def test_what_was_there_is_told_when_the_pool_is_gone():
    memory._record_memory_history(stacks="python")
    with coop.budget(144 * MIB, device="cuda"):
        train(steps=2)
    gc.collect()
    assert torch.ops.coop.pools() == 0
    snapshot = memory._snapshot()
    events = snapshot["device_traces"][torch.cuda.current_device()]
    (came,) = [it for it in events if it["action"] == "segment_alloc" and it["size"] > 64 * MIB]
    (went,) = [it for it in events if it["action"] == "segment_free" and it["size"] > 64 * MIB]
    assert (came["addr"], came["size"]) == (went["addr"], went["size"])
    segment = {"address": came["addr"], "total_size": came["size"]}
    check_events([it for it in in_pool(events, segment) if "segment" not in it["action"]], {})
    check_viewers(snapshot)


def test_a_history_that_is_over_is_forgotten():
    with coop.budget(144 * MIB, device="cuda"):
        memory._record_memory_history(stacks="python", max_entries=50)
        train(steps=1)
        segment = pool_in(memory._snapshot())
        events = memory._snapshot()["device_traces"][segment["device"]]
        assert len(in_pool(events, segment)) == 50
        memory._record_memory_history(None)
        train(steps=1)
        assert not any(memory._snapshot()["device_traces"])
