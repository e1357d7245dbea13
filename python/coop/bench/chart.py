"""Pictures like the paper's: a row for each network, of overhead, fragmentation and search latency
against memory; policies as lines, peers as points where they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from coop.bench.bounds import Bounds
from coop.bench.catalog import NETWORKS
from coop.bench.found import Found
from coop.bench.picture import COLOURS, Picture, Point

_WIDTH, _HEAD, _ROW = 1200, 96, 300
_LEFT, _STRIDE, _PANEL_WIDTH, _PANEL_HEIGHT = 72, 390, 308, 196
_INSET = 18  # between the frame and the first and last ratio
_LABEL_WIDTH = 26
_TITLE = "What less memory costs"


@dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    figure: Callable[[dict], float]
    has_peers: bool = False


PANELS = (
    Panel("overhead", "%", lambda cell: 100 * cell["overhead"], has_peers=True),
    Panel("fragmentation", "%", lambda cell: 100 * (cell["fragmentation"] or 0)),
    Panel("search latency a step", "ms", lambda cell: 1e3 * cell["search_s"]),
)


@dataclass(frozen=True)
class Frame:
    """Where values lie. What is above the most is drawn at the top."""

    left: float
    top: float
    ratios: tuple[float, float]
    values: tuple[float, float]

    def at(self, ratio: float, value: float) -> Point:
        return self._x(ratio), self._y(min(value, self.values[1]))

    def _x(self, ratio: float) -> float:
        least, most = self.ratios
        part = (ratio - least) / (most - least) if most > least else 0.5
        return self.left + _INSET + part * (_PANEL_WIDTH - 2 * _INSET)

    def _y(self, value: float) -> float:
        least, most = self.values
        return self.top + _PANEL_HEIGHT * (1 - (value - least) / (most - least))


def draw(found: Found, bounds: Bounds) -> Picture:
    return _Chart(found, bounds).draw()


class _Chart:
    def __init__(self, found: Found, bounds: Bounds) -> None:
        self._found = found
        self._bounds = bounds if found.device == "cuda" else {}
        self._policies = found.policies()
        names = dict.fromkeys(it.partition("@")[0] for it in found.peers())
        self._peers = [it for it in names if it not in self._policies]
        height = _HEAD + _ROW * len(found.networks)
        what = "Overhead, fragmentation and search latency against the memory ratio."
        self._picture = Picture(_WIDTH, height, _TITLE, what)

    def draw(self) -> Picture:
        self._draw_head()
        for row, name in enumerate(self._found.networks):
            self._draw_row(name, _HEAD + _ROW * row)
        return self._picture

    def _colour(self, variant: str) -> int:
        """compile@0.5 is drawn as compile is."""
        return [*self._policies, *self._peers].index(variant.partition("@")[0]) % COLOURS

    def _draw_head(self) -> None:
        picture, x = self._picture, _LEFT
        picture.text((x, 34), _TITLE, "title")

        def key(label: str, draw: Callable[[float], None]) -> None:
            nonlocal x
            draw(x)
            picture.text((x + 30, 64), label, "")
            x += 54 + 7.2 * len(label)

        for policy in self._policies:
            looks = f"s{self._colour(policy)}"
            key(policy, lambda at, looks=looks: picture.polyline([(at, 60), (at + 24, 60)], looks))
        for peer in self._peers:
            looks = f"f{self._colour(peer)}"
            key(
                peer,
                lambda at, looks=looks, name=peer: picture.diamond((at + 12, 60), 5, looks, name),
            )
        if self._bounds:
            key("lower bound", lambda at: picture.line((at, 60), (at + 24, 60), "reference"))
        picture.text((x, 64), "x: does not fit", "faint")

    def _draw_row(self, name: str, top: float) -> None:
        cell = self._found.plain(name)
        heading = NETWORKS[name].title
        if cell is not None:
            heading += f", batch {cell['batch']}, {1e3 * cell['plain_s']:.0f} ms a plain step"
        self._picture.text((_LEFT, top + 12), heading, "heading")
        for column, panel in enumerate(PANELS):
            frame = self._frame(name, panel, _LEFT + _STRIDE * column, top + 44)
            self._draw_axes(frame, panel, name)
            if panel.has_peers:
                self._draw_bound(frame, name)
                self._draw_peers(frame, panel, name)
            for policy in self._policies:
                self._draw_policy(frame, panel, name, policy)

    def _fine(self, name: str) -> list[dict]:
        """What has figures, of the policies."""
        cells = [
            self._found.at(name, ratio, policy)
            for ratio in self._found.ratios(name)
            for policy in self._policies
        ]
        return [it for it in cells if it is not None and it["status"] == "ok"]

    def _fine_peers(self, name: str) -> list[dict]:
        cells = [self._found.peer(name, peer) for peer in self._found.peers()]
        return [it for it in cells if it is not None and it["status"] == "ok"]

    def _frame(self, name: str, panel: Panel, left: float, top: float) -> Frame:
        values = [panel.figure(cell) for cell in self._fine(name)]
        ratios = list(self._found.ratios(name))
        least, most = min(values, default=0), max(values, default=0)
        if panel.has_peers:
            peers = self._fine_peers(name)
            ratios += [cell["memory_ratio"] for cell in peers]
            least = min([least, *map(panel.figure, peers)])
            # Some peers take several times as long: the others are to be told apart all the same.
            most = max(most, min(max(map(panel.figure, peers), default=0), max(2 * most, 40)))
        least, most = min(least, 0), max(most, 1e-3)
        room = 0.08 * (most - least)
        span = (min(ratios, default=0), max(ratios, default=1))
        return Frame(left, top, span, (least - room if least < 0 else 0, most + room))

    def _draw_axes(self, frame: Frame, panel: Panel, name: str) -> None:
        picture, bottom = self._picture, frame.top + _PANEL_HEIGHT
        least, most = frame.values
        for tick in ticks(least, most):
            _, y = frame.at(0, tick)
            looks = "zero" if tick == 0 else "grid"
            picture.line((frame.left, y), (frame.left + _PANEL_WIDTH, y), looks)
            picture.text((frame.left - 7, y + 4), f"{tick:g}", "end")
        all_of_it = [1.0] if frame.ratios[0] < 1 <= frame.ratios[1] else []
        last = -math.inf
        for ratio in sorted({*self._found.ratios(name), *all_of_it}):
            x, _ = frame.at(ratio, 0)
            picture.line((x, bottom), (x, bottom + 5), "frame")
            if x - last > _LABEL_WIDTH:
                picture.text((x, bottom + 20), f"{ratio:g}", "middle")
                last = x
        picture.box((frame.left, frame.top), _PANEL_WIDTH, _PANEL_HEIGHT, "frame")
        picture.text((frame.left, frame.top - 8), f"{panel.title} ({panel.unit})", "faint")
        middle = frame.left + _PANEL_WIDTH / 2
        picture.text((middle, bottom + 38), "memory / plain's peak", "middle faint")

    def _draw_bound(self, frame: Frame, name: str) -> None:
        trace = NETWORKS[name].trace
        known = [
            frame.at(ratio, 100 * self._bounds[trace, ratio])
            for ratio in self._found.ratios(name)
            if self._bounds.get((trace, ratio)) is not None
        ]
        if len(known) > 1:
            self._picture.polyline(known, "reference")

    def _draw_policy(self, frame: Frame, panel: Panel, name: str, policy: str) -> None:
        colour = self._colour(policy)
        cells = [
            it for ratio in self._found.ratios(name) if (it := self._found.at(name, ratio, policy))
        ]
        if panel.has_peers:
            there = self._fine_peers(name)
            cells += [it for it in there if it["variant"].startswith(f"{policy}@")]
        fine = [it for it in cells if it["status"] == "ok"]
        points = []
        for cell in sorted(fine, key=lambda it: it["memory_ratio"]):
            value = panel.figure(cell)
            points.append(frame.at(cell["memory_ratio"], value))
            self._picture.dot(points[-1], 3.5, f"f{colour}", _tip(cell, value, panel.unit))
        if len(points) > 1:
            self._picture.polyline(points, f"s{colour}")
        for cell in cells:
            if cell["status"] != "ok":
                order = self._policies.index(policy)
                at = (frame.at(cell["ratio"], 0)[0], frame.top + 10 + 11 * order)
                tip = f"{policy} at {cell['ratio']:g}: {cell['status']}"
                self._picture.cross(at, 3.5, f"s{colour}", tip)

    def _draw_peers(self, frame: Frame, panel: Panel, name: str) -> None:
        for cell in self._fine_peers(name):
            peer, _, share = cell["variant"].partition("@")
            if peer in self._policies:
                continue
            value = panel.figure(cell)
            at = frame.at(cell["memory_ratio"], value)
            self._picture.diamond(at, 5, f"f{self._colour(peer)}", _tip(cell, value, panel.unit))
            above = f"{value:.0f}{panel.unit}" if value > frame.values[1] else ""
            label = " ".join(it for it in (share, above) if it)
            if label:
                self._picture.text((at[0] + 7, at[1] + 4), label, "small")


def _tip(cell: dict, value: float, unit: str) -> str:
    return f"{cell['variant']} in {cell['memory_ratio']:.0%} of the memory: {value:.2f} {unit}"


def ticks(least: float, most: float, wanted: int = 4) -> list[float]:
    """Round numbers between, and 0 among them."""
    rough = (most - least) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(it * power for it in (1, 2, 2.5, 5, 10) if it * power >= rough * (1 - 1e-9))
    first, last = math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9)
    return [round(it * step, 9) for it in range(first, last + 1)]
