"""`coop run --report`: the first steps are recorded, and drawn while the program goes on."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path

from coop._files import why
from coop._native import simulator_path
from coop._out_of_memory import OutOfMemory
from coop.cli import tracing
from coop.cli.parser import say
from coop.cli.rank import who
from coop.cli.report import draw
from coop.cli.settings import Settings


class Recording(tracing.Recording):
    def __init__(self, page: Path, settings: Settings, budget: int) -> None:
        self._page = page
        self._folder = tempfile.TemporaryDirectory(prefix="coop-report-")
        program = Path(sys.argv[0]).stem or "program"
        super().__init__(Path(self._folder.name) / f"{program}.coop", settings, budget)

    def _have_enough(self) -> None:
        if self._write():
            # Not a daemon: it is waited for if the program ends first.
            threading.Thread(target=self._draw, name="coop report").start()

    def end(self) -> None:
        """Of a program that was over before its steps were. No thread can begin any more."""
        if self._write():
            uncaught = getattr(sys, "last_value", None)
            self._draw(uncaught if isinstance(uncaught, OutOfMemory) else None)

    def _write(self) -> bool:
        is_going_on = self._record is not None and os.getpid() == self._process
        super().end()
        return is_going_on and self._path.exists()

    def _draw(self, out_of_memory: BaseException | None = None) -> None:
        # The step that does not fit is the one to look at, though it is not whole.
        is_whole = self._whole > 0 and out_of_memory is None
        words = [f"--steps={self._whole}"] if is_whole else []
        try:
            draw(simulator_path(), [str(self._path)], words, self._page, out_of_memory)
            if not self._settings.is_quiet:
                say(f"{who()}: report     {self._page}\n")
        except (OSError, RuntimeError, ValueError) as error:
            say(f"{self._settings.command}: {self._page} was not written: {why(error)}\n")
        self._folder.cleanup()
