"""What is to be measured: cases, each for a process of its own, of several cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coop.bench.catalog import NETWORKS

RATIO, FREE, PEERS, SMALLEST, BATCH = "ratio", "not binding", "peers", "smallest", "batch"

FREE_ROUNDS = 2
"""Where nothing binds: a percent is much there."""

ACTIVATION_BUDGETS = (0.5, 0.2)
PEERS_OF = {
    "checkpoint": ("checkpoint", "coop@checkpoint"),
    "save_on_cpu": ("save_on_cpu",),
    "compile": ("compile",),
    "compile_budget": ("compile", *(f"compile@{share}" for share in ACTIVATION_BUDGETS)),
}
"""What each name stands for: coop@checkpoint is coop in as much memory as that peer takes."""


@dataclass(frozen=True)
class Case:
    network: str
    kind: str
    ratio: float | None
    """Budget over what plain PyTorch holds at most; for RATIO alone."""
    variants: tuple[str, ...]

    @property
    def name(self) -> str:
        where = {
            FREE: "where nothing binds",
            PEERS: "beside its peers",
            SMALLEST: "in as little as it fits into",
            BATCH: "with as large a batch as fits",
        }
        return f"{self.network} {where.get(self.kind) or f'at {self.ratio:.0%}'}"

    def only(self, variants: Sequence[str]) -> Case:
        return replace(self, variants=tuple(variants))


@dataclass(frozen=True)
class Wanted:
    networks: tuple[str, ...]
    device: str
    ratios: tuple[float, ...]
    policies: tuple[str, ...]
    peers: tuple[str, ...]
    timed: int
    """Steps that are timed."""
    warm_up: int
    has_smallest: bool = False
    limit: int | None = None
    """Bytes that the largest batch is to fit into."""

    def cases(self) -> list[Case]:
        """One network after the other; of each what says most comes first."""
        return [case for network in self.networks for case in self._cases_of(network)]

    def _cases_of(self, network: str) -> list[Case]:
        middle = NETWORKS[network].shown_at
        wanted = self.ratios if self.policies else ()
        ratios = sorted(wanted, key=lambda ratio: (abs(ratio - middle), -ratio))
        cases = [Case(network, RATIO, ratio, self.policies) for ratio in ratios]
        if "coop" in self.policies:
            cases.append(Case(network, FREE, None, ("coop",)))
        if self.peers:
            variants = [each for name in self.peers for each in PEERS_OF[name]]
            cases.append(Case(network, PEERS, None, tuple(dict.fromkeys(["plain", *variants]))))
        if self.has_smallest and self.policies:
            cases.append(Case(network, SMALLEST, None, self.policies))
        if self.limit is not None:
            cases.append(Case(network, BATCH, None, ("plain", "coop")))
        return cases

    def told(self, case: Case) -> dict:
        """To the process that measures it."""
        return {
            "network": case.network,
            "device": self.device,
            "kind": case.kind,
            "ratio": case.ratio,
            "limit": self.limit,
            "warm_up": self.warm_up,
            "timed": self.timed,
            "variants": list(case.variants),
        }
