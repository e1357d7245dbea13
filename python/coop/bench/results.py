"""What was measured, kept as it comes: one line of JSON for each cell."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from coop.bench.grid import BATCH, Case, Wanted

_WHICH = ("commit", "device", "network", "kind", "ratio", "variant", "timed", "limit")
"""What tells a cell from others."""


_WHOLE = '{"cells":'
"""How a file begins that is JSON as a whole."""


class NotResultsError(Exception):
    """A file that is something else; and why."""


@dataclass
class Results:
    path: Path
    commit: str
    """Of what is measured now."""
    cells: list[dict] = field(default_factory=list)
    """All that were ever kept there."""

    @classmethod
    def kept_in(cls, path: Path, commit: str) -> Results:
        return cls(path, commit, read(path) if path.exists() else [])

    def missing(self, wanted: Wanted, case: Case) -> Case:
        """The same case with what is not there yet, of this commit."""
        there = {_key(cell) for cell in self.cells}
        return case.only([it for it in case.variants if self._key(wanted, case, it) not in there])

    def keep(self, wanted: Wanted, case: Case, variant: str, **more: object) -> dict:
        """On the disk, when this returns."""
        cell = {**self._which(wanted, case, variant), **more}
        self.cells.append(cell)
        with self.path.open("a") as file:
            file.write(json.dumps(cell) + "\n")
        return cell

    def of(self, wanted: Wanted) -> list[dict]:
        """What is wanted and was found, in the order in which it is wanted."""
        last = {_key(cell): cell for cell in self.cells}
        keys = [
            self._key(wanted, case, variant) for case in wanted.cases() for variant in case.variants
        ]
        return [last[key] for key in keys if key in last]

    def _which(self, wanted: Wanted, case: Case, variant: str) -> dict:
        return {
            "commit": self.commit,
            "device": wanted.device,
            "network": case.network,
            "kind": case.kind,
            "ratio": case.ratio,
            "variant": variant,
            "timed": wanted.timed,
            "limit": wanted.limit if case.kind == BATCH else None,
        }

    def _key(self, wanted: Wanted, case: Case, variant: str) -> tuple:
        return _key(self._which(wanted, case, variant))


def _key(cell: dict) -> tuple:
    return tuple(cell[name] for name in _WHICH)


def read(path: Path) -> list[dict]:
    """Lines as they were kept, or all of them in one as --json writes them."""
    text = path.read_text()
    try:
        if text.startswith(_WHOLE):
            cells = json.loads(text)["cells"]
        else:
            cells = [json.loads(line) for line in text.splitlines() if line.strip()]
        for cell in cells:
            _key(cell)
    except (ValueError, KeyError, TypeError):
        raise NotResultsError(f"{path} is nothing that coop bench has written") from None
    return cells


def last_of_each(cells: Iterable[dict]) -> list[dict]:
    """What was measured again counts as it was the last time, whatever the commit."""
    found: dict[tuple, dict] = {}
    for cell in cells:
        key = tuple(cell[name] for name in _WHICH if name not in ("commit", "timed"))
        found.pop(key, None)
        found[key] = cell
    return list(found.values())


def write_all(path: Path, cells: list[dict]) -> None:
    """A line for each, so that one can look at it."""
    lines = ",\n".join(json.dumps(cell) for cell in cells)
    path.write_text(f"{_WHOLE} [\n{lines}\n]}}\n")
