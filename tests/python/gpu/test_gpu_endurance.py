"""A budget on a GPU for long, at its end, and with several streams."""

import threading
from pathlib import Path

import coop
import pytest
import torch
from torch import nn

MIB = 1 << 20
LAYERS, WIDTH, ROWS = 8, 512, 2048  # activations of 4 MiB


class Training:
    def __init__(self, seed=0):
        torch.manual_seed(seed)
        blocks = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS)]
        self.model = nn.Sequential(*blocks).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.draw = torch.Generator("cuda").manual_seed(seed)

    def step(self, rows=ROWS):
        x = torch.randn(rows, WIDTH, device="cuda", generator=self.draw)
        loss = self.model(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def state(self):
        return [it.detach().cpu() for it in self.model.parameters()]


def are_equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def plain(steps, seed=0):
    training = Training(seed)
    for _ in range(steps):
        training.step()
    return training.state()


def peak_of_plain():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    plain(2)
    return torch.cuda.max_memory_allocated()


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_thousand_steps():
    """Nothing grows: not the driver's memory, nor the pool's, nor the host's."""
    budget = int(0.6 * peak_of_plain())
    wanted = plain(1000)
    torch.cuda.empty_cache()
    before = torch.cuda.mem_get_info()[0]
    with coop.budget(budget, device="cuda"):
        training = Training()
        seen = []
        for step in range(1000):
            training.step()
            assert before - torch.cuda.mem_get_info()[0] <= budget + 2 * MIB  # the driver's grain
            if step % 100 == 99:
                torch.cuda.synchronize()
                seen.append((resident_bytes(), torch.cuda.memory_allocated()))
        assert coop.stats().evictions > 1000
        hosts, pools = zip(*seen[1:], strict=True)
        assert max(hosts) - min(hosts) < 32 * MIB
        assert max(pools) - min(pools) < MIB
        assert are_equal(wanted, training.state())


def test_a_hundred_budgets():
    """Each ends well or in an error, and the process trains on."""
    peak = peak_of_plain()
    wanted = plain(3)
    ends = []
    for percent in range(100, 0, -1):
        torch.cuda.empty_cache()
        training = None
        try:
            with coop.budget(max(1, peak * percent // 100), device="cuda"):
                training = Training()
                for _ in range(3):
                    training.step()
                assert are_equal(wanted, training.state())
            ends.append("well")
        except torch.OutOfMemoryError as error:
            assert "coop" in str(error)
            ends.append("out of memory")
        del training
        if percent % 20 == 0:
            assert are_equal(wanted, plain(3))
    assert ends[0] == "well"
    assert ends[-1] == "out of memory"
    assert are_equal(wanted, plain(3))
    assert ends == sorted(ends, reverse=True)  # the less, the worse


def test_two_trainings_on_two_streams():
    budget = int(1.4 * peak_of_plain())  # of both, which would take twice
    wanted = [plain(10, seed) for seed in (1, 2)]
    got = {}
    made = [Training(seed) for seed in (1, 2)]
    torch.cuda.empty_cache()

    def train(training, seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(10):
                training.step()
            got[seed] = training.state()

    with coop.budget(budget, device="cuda"):
        threads = [
            threading.Thread(target=train, args=each) for each in zip(made, (1, 2), strict=True)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert are_equal(wanted[0], got[1])
    assert are_equal(wanted[1], got[2])


def test_out_of_memory_in_another_stream():
    budget = int(0.8 * peak_of_plain())
    wanted = plain(4)
    torch.cuda.empty_cache()
    with coop.budget(budget, device="cuda"):
        training = Training()
        side = torch.cuda.Stream()
        for _ in range(4):
            with torch.cuda.stream(side), pytest.raises(torch.OutOfMemoryError):
                torch.ones(budget, device="cuda")
            training.step()
        assert are_equal(wanted, training.state())
