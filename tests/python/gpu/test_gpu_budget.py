"""A budget on a GPU: what it holds, counts, and says."""

import coop
import pytest
import torch
from coop import _plugin
from torch import nn

MIB = 1 << 20


def tensor(mib):
    return torch.ones(mib * MIB // 4, device="cuda")


def test_what_is_evicted_comes_back():
    with _plugin.budget(64 * MIB, stress=True):
        x = torch.randn(1 << 20, device="cuda")
        y = x * 2
        z = y + 1
        assert not torch.ops.coop.is_resident(y)
        assert torch.equal(z, x * 2 + 1)
        assert torch.equal(y.cpu(), x.cpu() * 2)
    assert torch.equal(y, x * 2)


def test_a_chain_longer_than_the_budget():
    with coop.budget(32 * MIB, device="cuda"):
        x = tensor(4)
        kept = [x]
        for _ in range(20):
            kept.append(kept[-1] + 1)
        assert coop.stats().evictions > 0
        for i, it in enumerate(kept):
            assert it[0].item() == it[-1].item() == i + 1


def test_the_driver_sees_no_more_than_the_budget():
    torch.cuda.init()
    torch.cuda.empty_cache()
    before = torch.cuda.mem_get_info()[0]
    with coop.budget(256 * MIB, device="cuda"):
        x = tensor(16)
        for _ in range(100):
            x = x * 1.5
        assert before - torch.cuda.mem_get_info()[0] <= 258 * MIB  # the driver's grain is 2 MiB
        assert torch.cuda.memory_reserved() <= 256 * MIB
    del x
    torch.cuda.empty_cache()
    assert before - torch.cuda.mem_get_info()[0] <= 6 * MIB  # 4 of them for moves, for ever


def test_what_was_there_before_counts():
    old = tensor(100)
    with coop.budget(256 * MIB, device="cuda"):
        assert torch.cuda.memory_reserved() <= 256 * MIB
        with pytest.raises(torch.OutOfMemoryError):
            tensor(200)
        assert (old[: 1 << 20] * 2).sum() == 2 << 20
    with (
        pytest.raises(torch.OutOfMemoryError, match="in use before"),
        coop.budget(64 * MIB, device="cuda"),
    ):
        pass


def test_statistics_are_true():
    with coop.budget(256 * MIB, device="cuda"):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        x = tensor(16)
        assert torch.cuda.memory_allocated() - before == 16 * MIB
        y = tensor(32)
        del y
        assert torch.cuda.memory_allocated() - before == 16 * MIB
        assert torch.cuda.max_memory_allocated() - before >= 48 * MIB
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() - before == 16 * MIB
        assert "Allocated memory" in torch.cuda.memory_summary()
        held = sum(it["allocated_size"] for it in torch.cuda.memory_snapshot())
        assert held == torch.cuda.memory_allocated()
        torch.cuda.empty_cache()
        assert x[0] == 1


def test_what_cublas_keeps_lies_at_the_left():
    """It cannot move, and would cut the pool for as long as the budget lasts."""
    with coop.budget(512 * MIB, device="cuda"):
        x = tensor(1).view(512, 512)
        product = x @ x
        (pool,) = (it for it in torch.cuda.memory_snapshot() if it["total_size"] > 256 * MIB)
        sizes = [it["size"] for it in pool["blocks"] if it["state"] == "active_allocated"]
        is_equal = torch.equal(product, torch.full_like(x, 512))
    assert is_equal
    assert sizes[-2:] == [x.nbytes, x.nbytes]
    assert 1 <= len(sizes[:-2]) <= 2, "one of cuBLAS's, and one of cuBLASLt's"
    assert x.nbytes not in sizes[:-2]


def test_the_error_is_pytorchs():
    with coop.budget(64 * MIB, device="cuda"):
        with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory\.") as error:
            tensor(100)
        assert "coop.budget(" in str(error.value)
        assert tensor(10)[0] == 1


def test_allocator_goes_with_the_last_pool():
    from torch.cuda import memory

    with coop.budget(64 * MIB, device="cuda"):
        x = tensor(4)
    assert x.sum() == x.numel()
    assert torch.ops.coop.pools() <= 1
    del x
    assert torch.ops.coop.pools() == 0
    assert memory.memory_allocated() == 0


@pytest.mark.parametrize("stream_first", [False, True])
def test_another_stream(stream_first):
    """What another stream still reads is not given to anybody else."""
    side = torch.cuda.Stream()
    with coop.budget(64 * MIB, device="cuda"):
        if stream_first:
            with torch.cuda.stream(side):
                torch.ones(1 << 20, device="cuda")
        results = []
        for i in range(50):
            x = torch.full((1 << 20,), float(i), device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(1_000_000)
                y = x * 2
                x.record_stream(side)
                results.append(y.sum())
            del x
            torch.full((1 << 20,), -1.0, device="cuda")  # takes its place, if it may
        torch.cuda.current_stream().wait_stream(side)
        assert [it.item() for it in results] == [i * 2.0 * (1 << 20) for i in range(50)]


def test_evicted_while_another_stream_reads():
    side = torch.cuda.Stream()
    with coop.budget(40 * MIB, device="cuda"):
        base = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
        wanted, got = [], []
        for i in range(12):
            x = base + i
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(2_000_000)
                got.append((x * 2).sum())
            filler = [base + j for j in range(8)]  # evicts x, perhaps
            wanted.append((torch.arange(1 << 20, dtype=torch.float32) + i) * 2)
            assert x[1].item() == i + 1
            del filler
        torch.cuda.current_stream().wait_stream(side)
        for a, b in zip(got, wanted, strict=True):
            assert a.item() == pytest.approx(b.double().sum().item(), rel=1e-3)


def train(steps, budget=None, *, policy="coop"):
    torch.manual_seed(0)
    from contextlib import nullcontext

    scope = coop.budget(budget, device="cuda", policy=policy) if budget else nullcontext()
    with scope:
        layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
        model = nn.Sequential(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
        losses = []
        for _ in range(steps):
            x = torch.randn(32, 256, 256, device="cuda")
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        peak = torch.cuda.max_memory_allocated()
        stats = coop.stats() if budget else None
    state = [*losses, *model.parameters(), torch.cuda.get_rng_state()]
    return [it.detach().cpu() for it in state], peak, stats


@pytest.mark.parametrize("share", [0.8, 0.6, 0.5])
def test_a_transformer_trains_in_less(share):
    torch.cuda.reset_peak_memory_stats()
    wanted, peak, _ = train(5)
    torch.cuda.empty_cache()
    got, _, stats = train(5, int(share * peak))
    assert stats.evictions > 0
    assert all(torch.equal(a, b) for a, b in zip(wanted, got, strict=True))


@pytest.mark.parametrize("seeds", [1, 2])
def test_dropout_of_recurrent_networks_goes_on(seeds):
    """cuDNN keeps a generator of its own, which begins anew when PyTorch's gets a seed."""

    def run():
        torch.manual_seed(0)
        network = nn.GRU(8, 16, 2, dropout=0.5).cuda()
        x = torch.randn(20, 30, 8, device="cuda")
        dropped = nn.functional.dropout(torch.ones(1 << 16, device="cuda") * 2)
        first = network(x)[0].detach()
        if seeds == 2:
            torch.manual_seed(1)
        between = dropped * 2  # evicted, and made again
        return [first, between, network(x)[0].detach(), torch.rand(4, device="cuda")]

    wanted = run()
    with _plugin.budget(256 * MIB, stress=True, small_limit=0):
        got = run()
        assert _plugin.stats()["replays"] > 0
    assert all(torch.equal(a, b) for a, b in zip(wanted, got, strict=True))
