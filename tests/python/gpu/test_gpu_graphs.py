"""CUDA graphs and MemPools inside a budget: PyTorch's own, counted, never evicted."""

import coop
import pytest
import torch
from coop import _plugin

MIB = 1 << 20


def network():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)]
    return torch.nn.Sequential(*layers).cuda()


def trained(steps):
    """A whole step as a graph, as PyTorch's documentation has it, and work on its results."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.zeros(64, 256, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        out = model(batch)
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        return out, loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, loss = step()
    seen = []
    made = []
    for i in range(steps):
        batch.copy_(torch.full((64, 256), 0.01 * i, device="cuda"))
        graph.replay()
        made.append(out * 2 + 1)  # not to be made again from what the next launch leaves in out
        seen.append(loss.clone())
    return [*seen, *made, *(it.detach().clone() for it in model.parameters())]


def test_a_captured_step_trains_as_without():
    wanted = trained(5)
    with _plugin.budget(256 * MIB, stress=True, small_limit=0):
        got = trained(5)
        assert all(torch.equal(a, b) for a, b in zip(wanted, got, strict=True))


def test_what_others_were_made_from_is_kept_before_a_graph_writes_it():
    with _plugin.budget(64 * MIB, stress=True, small_limit=0):
        x = coop.pin(torch.full((1 << 20,), 3.0, device="cuda"))
        y = x + 1  # evicted at once
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x.mul_(2)
        graph.replay()
        assert torch.equal(y, torch.full_like(y, 4.0))
        assert torch.equal(x, torch.full_like(x, 6.0))


def test_a_graph_from_before_the_budget_writes_unseen():
    source = torch.ones(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = source * 3
    with _plugin.budget(64 * MIB, stress=True, small_limit=0):
        made = []
        for i in range(3):
            source.fill_(i)
            graph.replay()
            made.append(out + 1)
        assert [it[0].item() for it in made] == [1, 4, 7]


def test_what_is_evicted_cannot_be_captured():
    with _plugin.budget(64 * MIB, stress=True, small_limit=0):
        x = torch.ones(1 << 20, device="cuda") * 2
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match=r"evicted now.*coop\.pin"), torch.cuda.graph(graph):
            x + 1
    assert x.sum().item() == 2 << 20


def test_on_the_stream_of_the_budget_it_is_refused():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), coop.budget(64 * MIB, device="cuda"):
        x = torch.ones(1 << 20, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with (
            pytest.raises(RuntimeError, match="Capture it on another"),
            torch.cuda.graph(graph, stream=stream),
        ):
            x + 1


def test_what_a_graph_holds_counts():
    with coop.budget(64 * MIB, device="cuda"):
        x = torch.ones(1 << 20, device="cuda")
        before = coop.stats().used_bytes
        allocated = torch.cuda.memory_allocated()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2
        held = coop.stats().used_bytes
        assert held >= before + y.nbytes
        # Once, though both PyTorch and coop count it.
        assert torch.cuda.memory_allocated() <= allocated + 2 * y.nbytes
        graph.replay()
        assert y.sum().item() == 2 << 20
        del y
        graph.reset()
        torch.cuda.empty_cache()
        assert coop.stats().used_bytes < held


def test_more_than_the_budget_is_an_error():
    with coop.budget(32 * MIB, device="cuda"):
        x = torch.ones(4 << 20, device="cuda")  # half of it
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(torch.OutOfMemoryError), torch.cuda.graph(graph):
            y = torch.cat([x, x])
        assert x.sum().item() == 4 << 20
    del y


def test_a_pool_of_ones_own():
    with coop.budget(128 * MIB, device="cuda"):
        before = coop.stats().used_bytes
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            x = torch.ones(2 << 20, device="cuda")
        assert coop.stats().used_bytes >= before + x.nbytes
        y = x + 1
        assert torch.equal(y, torch.full_like(y, 2.0))
