"""The process of one case: a network at one memory ratio, or beside its peers.

It is told on stdin what to measure, as one line of JSON, and begins at the next line. It says on
stdout what it has found, one line for each cell. When stdin ends so does it: whoever started it is
gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TextIO

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before cuBLAS is there, or never

import torch

from coop.bench import searching
from coop.bench.catalog import NETWORKS
from coop.bench.grid import BATCH, FREE, PEERS, SMALLEST
from coop.bench.machine import Machine
from coop.bench.measuring import Bench, BenchInTurns, Steps
from coop.bench.outcome import try_to
from coop.bench.training import Trainer
from coop.bench.ways import AMPLE, inside, peer


@dataclass
class Case:
    """As `coop.bench.grid` has it."""

    network: str
    device: str
    kind: str
    ratio: float | None
    limit: int | None
    """Bytes, for the largest batch."""
    warm_up: int
    timed: int
    beat: Callable[[], None]
    """Says that it goes on."""

    def __post_init__(self) -> None:
        self._machine = Machine(self.device)

    def load(self) -> None:
        """What it needs beside PyTorch. The GPU is another's yet. What is wrong with it shows when
        the case begins."""
        package = NETWORKS[self.network].size(self.device).needs
        if package is not None:
            with suppress(Exception):
                import_module(package)

    def begin(self) -> None:
        self._machine.prepare()
        if self.kind != BATCH:
            steps = Steps(2, 2) if self.kind == SMALLEST else Steps(self.warm_up, self.timed)
            self._bench = self._bench_of(Trainer.of(self.network, self._machine), steps)
            self._bench.begin()

    def _bench_of(self, trainer: Trainer, steps: Steps) -> Bench:
        if self._machine.has_gpu:
            return Bench(trainer, steps)
        return BenchInTurns(trainer, steps, self.network, self.beat)

    def measure(self, variant: str) -> dict:
        if self.kind == BATCH:
            return searching.largest_batch(
                self.network, self._machine, variant, self.limit, self.beat
            )
        if self.kind == SMALLEST:
            return searching.smallest_ratio(self._bench, variant, self.beat)
        if self.kind == PEERS:
            return self._beside_peers(variant)
        if self.kind == FREE:
            return self._bench.free(inside(AMPLE, self.device, variant))
        return self._in_budget(variant, int(self.ratio * self._bench.peak_bytes))

    def _in_budget(self, policy: str, budget: int) -> dict:
        return self._bench.policy(inside(budget, self.device, policy), budget)

    def _beside_peers(self, variant: str) -> dict:
        """A policy of ours has the memory of a peer: "coop@checkpoint"."""
        policy, _, other = variant.partition("@")
        if variant == "plain":
            return self._bench.plain_itself()
        if policy != "coop":
            return self._bench.peer(self._peer(variant))
        run = self._bench.trainer.run(self._peer(other), self.warm_up, 1)
        return self._in_budget(policy, self._bench.peak_of(self._peer(other), run))

    def _peer(self, name: str):
        return peer(name, self._bench.trainer.network, self._machine)

    def facts(self) -> dict[str, str]:
        return self._machine.facts()

    def is_clean(self) -> bool:
        return self._machine.is_clean()


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed
    wanted = json.loads(sys.stdin.readline())
    variants = wanted.pop("variants")
    case = Case(**wanted, beat=lambda: tell(out, beat=True))
    case.load()
    if not sys.stdin.readline():
        return
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if case.device == "cuda" and not torch.cuda.is_available():
        return tell(out, refused="PyTorch sees no GPU here")
    tell(out, facts=case.facts())
    began = try_to(lambda: case.begin() or {})
    if began["status"] != "ok":
        for variant in variants:
            tell(out, variant=variant, cell=began)
        return
    for variant in variants:
        tell(out, variant=variant, cell=try_to(case.measure, variant))
        if not case.is_clean():
            return  # what is left goes to another process


def tell(out: TextIO, **what: object) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


def _end_with_parent() -> None:
    """Not by sys.stdin, whose lock Python needs when it ends by itself."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
