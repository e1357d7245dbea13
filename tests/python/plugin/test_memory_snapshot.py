"""What PyTorch's memory snapshots are told of a pool. They are of GPUs (tests/python/gpu); what
they are made from is tried here, on the CPU."""

import gc
from itertools import accumulate

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402
from snapshots import blocks_of, check_events, check_viewers  # noqa: E402
from torch import nn  # noqa: E402

MIB = 1 << 20
ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free")


def threes(numbers):
    return zip(*[iter(numbers)] * 3, strict=True)


def snapshot():
    """In PyTorch's words."""
    (address, *blocks), events = torch.ops.coop.memory_snapshot()
    rows = list(threes(blocks))
    starts = accumulate((size for size, _, _ in rows), initial=address)
    held = sum(size for size, _, is_held in rows if is_held)
    segment = {
        "device": 0,
        "address": address,
        "total_size": sum(size for size, _, _ in rows),
        "allocated_size": held,
        "active_size": held,
        "requested_size": sum(requested for _, requested, _ in rows),
        "stream": 0,
        "segment_type": "large",
        "frames": [],
        "blocks": [
            {
                "address": start,
                "size": size,
                "requested_size": requested,
                "state": "active_allocated" if is_held else "inactive",
                "frames": [],
            }
            for start, (size, requested, is_held) in zip(starts, rows, strict=False)
        ],
    }
    names = dict(enumerate(ACTIONS))
    trace = [
        {"action": names[action], "addr": addr, "size": size, "stream": 0}
        for action, addr, size in threes(events)
    ]
    return {"segments": [segment], "device_traces": [trace]}


def train(steps):
    torch.manual_seed(0)
    layers = [it for _ in range(8) for it in (nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1))]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(1024, 128)).square().mean().backward()
        optimizer.step()
    return model, optimizer


def test_its_blocks_are_those_of_the_tensors():
    with _plugin.budget(16 * MIB):
        tensors = [torch.ones(n) for n in (1 << 20, 100_000, 7, 300)]
        del tensors[1]
        held = blocks_of(snapshot()["segments"][0])
        for tensor in tensors:
            assert held[tensor.data_ptr()] >= tensor.nbytes
        counted = _plugin.stats()
        assert sum(held.values()) == counted["held_bytes"]
        assert snapshot()["segments"][0]["total_size"] == counted["pool_bytes"]


@pytest.mark.parametrize(("how", "steps"), [("tight", 4), ("stress", 1)])
def test_events_lead_to_what_there_is(how, steps):
    tight = _plugin.budget(8 * MIB, small_limit=4096)
    with tight if how == "tight" else _plugin.budget(64 * MIB, stress=True, small_limit=0):
        before = torch.ones(1 << 16)
        torch.ops.coop.record_memory_history(1 << 20)
        kept = train(steps)
        counted = _plugin.stats()
        assert counted["evictions"] > 0
        said = snapshot()
        events = said["device_traces"][0]
        frees = sum(it["action"] == "free_completed" for it in events)
        assert frees == sum(it["action"] == "free_requested" for it in events)
        assert frees > counted["evictions"] + counted["moves"]
        check_events(events, blocks_of(said["segments"][0]))
        check_viewers(said)
        torch.ops.coop.record_memory_history(0)
        assert snapshot()["device_traces"] == [[]]
    del before, kept
    gc.collect()
    assert torch.ops.coop.pools() == 0


def test_the_latest_are_kept():
    with _plugin.budget(16 * MIB):
        torch.ops.coop.record_memory_history(10)
        kept = train(steps=1)
        said = snapshot()
        events = said["device_traces"][0]
        assert len(events) == 10
        check_events(events, blocks_of(said["segments"][0]))
        torch.ops.coop.record_memory_history(0)
        del kept


def test_a_recording_beside_it(tmp_path):
    """Both are told."""
    import coop

    with _plugin.budget(8 * MIB, small_limit=4096):
        torch.ops.coop.record_memory_history(1 << 20)
        with coop.record(tmp_path / "step.coop"):
            kept = train(steps=1)
        kept = [kept, train(steps=1)]
        said = snapshot()
        check_events(said["device_traces"][0], blocks_of(said["segments"][0]))
        torch.ops.coop.record_memory_history(0)
        del kept
    assert (tmp_path / "step.coop").stat().st_size > 1000
