"""Where what was measured goes: tables on stdout, a file of JSON, a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coop.bench.bounds import read_bounds
from coop.bench.chart import draw
from coop.bench.found import Found
from coop.bench.goals import missed
from coop.bench.network_tables import in_full
from coop.bench.picture import write_picture
from coop.bench.results import write_all
from coop.bench.tables import brief


@dataclass(frozen=True)
class Showing:
    json: Path | None = None
    plot: Path | None = None
    is_full: bool = False

    def show(self, cells: list[dict]) -> None:
        """A GPU and a CPU are never in one table."""
        if self.json is not None:
            write_all(self.json, cells)
        bounds = read_bounds()
        for device in sorted({cell["device"] for cell in cells}, reverse=True):
            found = Found(cell for cell in cells if cell["device"] == device)
            text = brief(found, bounds)
            if self.is_full:
                text += "\n\n" + in_full(found, bounds)
                # What is wanted was said of networks that fill a GPU.
                text += "\n\n" + missed(found, bounds) if device == "cuda" else ""
            text = "\n".join(line.rstrip() for line in text.splitlines())
            print(text)
            if self.plot is not None:
                write_picture(self.plot, draw(found, bounds), text)
