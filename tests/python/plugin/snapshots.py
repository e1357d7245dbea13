"""What a viewer of PyTorch's memory snapshots does with one, and would stumble over."""

import copy

from torch.cuda import _memory_viz


def blocks_of(segment: dict) -> dict[int, int]:
    """Address and size of what is held, by adding up sizes as viewers do."""
    held, address = {}, segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == address
        assert 0 <= block["requested_size"] <= block["size"] > 0
        if block["state"] == "active_allocated":
            held[address] = block["size"]
        address += block["size"]
    assert address == segment["address"] + segment["total_size"]
    return held


def check_events(events: list[dict], held: dict[int, int]) -> None:
    """From what is held in the end back to the beginning: nothing is taken that is not there, and
    nothing given back on top of something else."""
    held = dict(held)
    for event in reversed(events):
        address, size = event.get("addr"), event["size"]
        if event["action"] == "alloc":
            assert held.pop(address) == size
        elif event["action"] == "free_completed":
            overlapped = [it for it, n in held.items() if it < address + size and address < it + n]
            assert not overlapped
            held[address] = size


def in_pool(events: list[dict], segment: dict) -> list[dict]:
    begin, end = segment["address"], segment["address"] + segment["total_size"]
    return [it for it in events if begin <= it.get("addr", 0) < end]


def check_viewers(snapshot: dict) -> None:
    """All that torch.cuda._memory_viz can do with it, but for what it would load from elsewhere."""
    kept = copy.deepcopy(snapshot)
    assert "total_allocated" in _memory_viz.segsum(snapshot)
    assert "TOTAL MEM" in _memory_viz.trace(snapshot)
    for draw in (_memory_viz.segments, _memory_viz.memory):
        drawn = draw(snapshot, format_flamegraph=lambda lines: lines)
        assert ("active_allocated" in drawn) == bool(snapshot["segments"])
    lists = (snapshot["segments"], kept["segments"])
    _memory_viz.compare(*lists, format_flamegraph=lambda lines: lines)
    for page in (
        _memory_viz.segment_plot(snapshot),
        _memory_viz.trace_plot(snapshot),
        _memory_viz.trace_plot(snapshot, plot_segments=True),
        _memory_viz.trace_plot(kept, filter_freed=True),
    ):
        assert page.count("snapshot.pickle") == 1
