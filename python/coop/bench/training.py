"""Trains a network from its seed, again and again, and says how long its steps take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

import coop
from coop import _plugin
from coop.bench.catalog import NETWORKS, Network
from coop.bench.machine import Machine, Mark
from coop.bench.networks import Workload, workload_of
from coop.bench.ways import PLAIN, Way

Turn = Callable[[], None]
"""Waits until the next step may begin."""


def at_once() -> None:
    pass


class Training:
    """One that has begun. Two of them make the same steps."""

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        is_adam: bool,
        way: Way = PLAIN,
        turn: Turn = at_once,
    ) -> None:
        torch.manual_seed(0)
        self._workload, self._machine, self._way, self._turn = workload, machine, way, turn
        with torch.device(machine.device):
            self._model = workload.make()
        self._optimizer = _optimizer(self._model, is_adam)
        self._prepared = way.prepare(self._model)
        self._losses: list[torch.Tensor] = []
        self._marks: list[tuple[Mark, Mark]] = []
        self.host_s: float | None = None
        """What the host took for the last step that was made alone."""

    @property
    def times(self) -> list[float]:
        """Seconds of every step."""
        return [self._machine.seconds(began, ended) for began, ended in self._marks]

    def steps(self, count: int) -> Training:
        """As programs make them: the host goes on to the next while a GPU is at work."""
        for _ in range(count):
            self._turn()
            self._step()
        return self

    def steps_alone(self, count: int) -> Training:
        """Each begins when the GPU has nothing left to do: what the host takes for it shows."""
        for _ in range(count):
            self._turn()
            self._machine.wait()
            began = time.perf_counter()
            self._step()
            self.host_s = time.perf_counter() - began
            self._machine.wait()
        return self

    def _step(self) -> None:
        began = self._machine.mark()
        with torch.device(self._machine.device):
            inputs, targets = self._workload.batch(len(self._losses))
        self._optimizer.zero_grad()
        with self._way.around_forward():
            loss = self._workload.loss(self._prepared, inputs, targets)
        loss.backward()
        self._optimizer.step()
        self._losses.append(loss.detach().clone())
        self._marks.append((began, self._machine.mark()))

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

    @classmethod
    def said(cls, said: dict) -> Counters:
        """By another process, of one as a dictionary."""
        by_op = tuple(coop.Recomputed(**it) for it in said["shown"]["by_op"])
        return cls(coop.Stats(**{**said["shown"], "by_op": by_op}), said["inner"])


@dataclass(frozen=True)
class Run:
    times: list[float]
    host_s: float | None
    losses: list[float]
    state: list[int]
    warm_up: int
    """So many of the first steps do not count."""
    peak_bytes: int | None
    reserved_bytes: int | None
    before: Counters | None
    """When the steps that count began."""
    after: Counters | None

    @classmethod
    def said(cls, said: dict) -> Run:
        counted = {key: Counters.said(said[key]) for key in ("before", "after") if said[key]}
        return cls(**{**said, **counted})


@dataclass(frozen=True)
class Trainer:
    network: Network
    workload: Workload
    machine: Machine

    @classmethod
    def of(cls, name: str, machine: Machine, batch: int | None = None) -> Trainer:
        network = NETWORKS[name]
        return cls(network, workload_of(network.size(machine.device), batch), machine)

    def begin(self, way: Way = PLAIN, turn: Turn = at_once) -> Training:
        return Training(self.workload, self.machine, self.network.is_adam, way, turn)

    def run(self, way: Way, warm_up: int, steps: int, turn: Turn = at_once) -> Run:
        self.machine.forget()
        with way.scope():
            alone = min(warm_up, 1)
            training = self.begin(way, turn).steps(warm_up - alone).steps_alone(alone)
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
        state = training.state()
        return Run(
            training.times, training.host_s, losses, state, warm_up, peak, reserved, before, after
        )
