"""Trains a network from its seed, again and again, and says how long its steps take."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

import coop
from coop import _plugin
from coop.bench.catalog import NETWORKS, Network
from coop.bench.machine import Machine
from coop.bench.networks import Workload, workload_of
from coop.bench.ways import PLAIN, Way


class Training:
    """One that has begun. Two of them make the same steps."""

    def __init__(
        self, workload: Workload, machine: Machine, is_adam: bool, way: Way = PLAIN
    ) -> None:
        torch.manual_seed(0)
        self._workload, self._machine, self._way = workload, machine, way
        with torch.device(machine.device):
            self._model = workload.make()
        self._optimizer = _optimizer(self._model, is_adam)
        self._prepared = way.prepare(self._model)
        self._losses: list[torch.Tensor] = []
        self.times: list[float] = []
        """Seconds of every step."""
        self.host_times: list[float] = []
        """The same, a GPU not waited for."""

    def steps(self, count: int) -> Training:
        for _ in range(count):
            self.step()
        return self

    def step(self) -> None:
        self._machine.wait()
        began = time.perf_counter()
        with torch.device(self._machine.device):
            inputs, targets = self._workload.batch(len(self._losses))
        self._optimizer.zero_grad()
        with self._way.around_forward():
            loss = self._workload.loss(self._prepared, inputs, targets)
        loss.backward()
        self._optimizer.step()
        self._losses.append(loss.detach().clone())
        self.host_times.append(time.perf_counter() - began)
        self._machine.wait()
        self.times.append(time.perf_counter() - began)

    def end(self) -> list[float]:
        """The losses of all steps. Nothing but the network stays."""
        losses = [it.item() for it in self._losses]
        self._optimizer.zero_grad()
        del self._optimizer, self._prepared, self._losses
        return losses

    def state(self) -> list[int]:
        """A sum over the bits of each parameter and buffer: none where it was differs unseen."""
        return [_sum_of_bits(it) for it in self._model.state_dict().values()]


def _optimizer(model: torch.nn.Module, is_adam: bool) -> torch.optim.Optimizer:
    if is_adam:
        return torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)


def _sum_of_bits(tensor: torch.Tensor) -> int:
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = tensor.detach().contiguous().view(whole[tensor.element_size()])
    return bits.sum(dtype=torch.int64).item()


@dataclass(frozen=True)
class Counters:
    shown: coop.Stats
    inner: dict[str, int]

    @classmethod
    def now(cls) -> Counters:
        return cls(coop.stats(), _plugin.stats())


@dataclass(frozen=True)
class Run:
    times: list[float]
    host_times: list[float]
    losses: list[float]
    state: list[int]
    warm_up: int
    """So many of the first steps do not count."""
    peak_bytes: int | None
    reserved_bytes: int | None
    before: Counters | None
    """When the steps that count began."""
    after: Counters | None


@dataclass(frozen=True)
class Trainer:
    network: Network
    workload: Workload
    machine: Machine

    @classmethod
    def of(cls, name: str, machine: Machine, batch: int | None = None) -> Trainer:
        network = NETWORKS[name]
        return cls(network, workload_of(network.size(machine.device), batch), machine)

    def begin(self, way: Way = PLAIN) -> Training:
        return Training(self.workload, self.machine, self.network.is_adam, way)

    def run(self, way: Way, warm_up: int, steps: int) -> Run:
        self.machine.forget()
        with way.scope():
            training = self.begin(way).steps(warm_up)
            before = Counters.now() if way.is_counted else None
            if before is None:
                self.machine.reset_peaks()  # compilers try things out at first
            training.steps(steps)
            after = Counters.now() if way.is_counted else None
            peak, reserved = self.machine.peaks()
            if after is not None and peak is None:
                peak = after.shown.peak_bytes
            losses = training.end()
        # Not inside: there may be no room for sums.
        state, times, host_times = training.state(), training.times, training.host_times
        return Run(times, host_times, losses, state, warm_up, peak, reserved, before, after)
