"""A report: what runs inside, drawn."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType

import torch

from coop._out_of_memory import OutOfMemory
from coop._recording import file_beside, record


class report(record):  # noqa: N801
    """Draw what happens in memory inside, as one HTML file that needs nothing else.

        with coop.budget("8GiB"), coop.report("mem.html") as report:
            for batch in batches[:5]:
                report.step()
                train_step(batch)

    path: of the file. It is there when the scope has ended.

    device: whose budget, where several are in force; without it, the one that began last.

    It shows the last step, or all of it if there is none. Inside a budget, that one is drawn.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, device: torch.device | str | None = None
    ) -> None:
        self.page = Path(os.fspath(path))
        self._folder = tempfile.TemporaryDirectory(prefix="coop-report-")
        super().__init__(Path(self._folder.name) / f"{self.page.stem}.coop", device=device)

    def __enter__(self) -> report:
        file_beside(self.page).unlink()
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, traceback)
        from coop._native import simulator_path
        from coop.cli.report import draw

        out_of_memory = error if isinstance(error, OutOfMemory) else None
        draw(simulator_path(), [str(self.path)], [], self.page, out_of_memory)

    def __repr__(self) -> str:
        return f"coop.report({str(self.page)!r})"
