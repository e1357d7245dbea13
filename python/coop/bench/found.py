"""The cells of a benchmark, to be asked for by what they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coop.bench.catalog import NETWORKS
from coop.bench.grid import FREE, PEERS, RATIO

MARKS = {
    "does not fit": "-",
    "too slow": "slow",
    "timed out": "time",
    "crashed": "crash",
    "failed": "fail",
    "not tried": "n/a",
}
MEANING = (
    "-: does not fit; slow: more than 4 times as long; time: took too long or hung; "
    "crash, fail: why is in the JSON; n/a: makes no sense there; empty: not measured"
)
_ORDER = ("coop", "coop-paper", "dtr", "dte")


class Found:
    def __init__(self, cells: Iterable[dict]) -> None:
        self.cells = list(cells)
        self._by_what = {
            (it["network"], it["kind"], it["ratio"], it["variant"]): it for it in self.cells
        }

    @property
    def networks(self) -> list[str]:
        """In the catalogue's order."""
        there = {cell["network"] for cell in self.cells}
        return [name for name in NETWORKS if name in there]

    @property
    def device(self) -> str:
        return self.cells[0]["device"]

    def of(self, network: str, kind: str | None = None) -> list[dict]:
        return [it for it in self.cells if it["network"] == network and kind in (None, it["kind"])]

    def ratios(self, network: str) -> list[float]:
        """The largest first."""
        return sorted({it["ratio"] for it in self.of(network, RATIO)}, reverse=True)

    def policies(self, network: str | None = None) -> list[str]:
        """Ours first, then the published ones, then what else was tried."""
        cells = [it for it in self.cells if it["kind"] == RATIO]
        names = _unique(it["variant"] for it in cells if network in (None, it["network"]))
        return sorted(names, key=lambda it: _ORDER.index(it) if it in _ORDER else len(_ORDER))

    def peers(self) -> list[str]:
        names = _unique(it["variant"] for it in self.cells if it["kind"] == PEERS)
        return [name for name in names if name != "plain"]

    def at(self, network: str, ratio: float, policy: str) -> dict | None:
        return self._by_what.get((network, RATIO, ratio, policy))

    def free(self, network: str) -> dict | None:
        return self._by_what.get((network, FREE, None, "coop"))

    def peer(self, network: str, name: str) -> dict | None:
        return self._by_what.get((network, PEERS, None, name))

    def plain(self, network: str) -> dict | None:
        """Any that knows of plain steps."""
        return next((it for it in self.of(network) if "plain_s" in it), None)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def shown(cell: dict | None, figure: Callable[[dict], str]) -> str:
    """The figure, or a mark that says why there is none."""
    if cell is None:
        return ""
    return figure(cell) if cell["status"] == "ok" else MARKS[cell["status"]]


def overhead(cell: dict) -> str:
    return f"{cell['overhead']:.1%}"


def fragmentation(cell: dict) -> str:
    """Of the steps that count; nothing is fragmented where nothing is searched for."""
    return f"{cell['fragmentation'] or 0.0:.1%}"


def search_latency(cell: dict) -> str:
    return f"{1e3 * cell['search_s']:.2f}"
