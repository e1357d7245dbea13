"""The end of a program whose budget cannot begin: exit code 2 and one line, whatever it does.

It is in the middle of `import torch` then. `SystemExit` would end it if nobody caught that; but it
may be a thread that imports, or a test runner, or somebody who tries what else there is, and all of
them would go on without a budget. So it ends at once. What it has printed is there; its `finally`
and atexit do not run: they might wait for this very thread, and what it was to do has not begun.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from typing import NoReturn

from coop.cli.parser import USAGE_ERROR, one_line

_STDERR = 2
_FIRST = 256  # out of the way: programs get the numbers that they would get without us


class LastWords:
    """To stderr as it is now. pytest, for one, puts a file there, which nobody would see again."""

    def __init__(self) -> None:
        self._stderr: int | None = None
        with suppress(OSError):  # closed; or so many files there may not be
            self._stderr = fcntl.fcntl(_STDERR, fcntl.F_DUPFD_CLOEXEC, _FIRST)
            self._was = os.fstat(self._stderr)

    def are_not_needed(self) -> None:
        if self._is_there():
            os.close(self._stderr)
        self._stderr = None

    def say(self, who: str, why: object) -> NoReturn:
        try:
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):  # closed, or the program's own
                    stream.flush()
            line = f"{who}: error: {one_line(why)}\n".encode(errors="backslashreplace")
            with suppress(OSError):
                os.write(self._stderr if self._is_there() else _STDERR, line)
        finally:
            os._exit(USAGE_ERROR)

    def _is_there(self) -> bool:
        """Daemons close all that they do not know, and the number may be another file's by now."""
        try:
            return self._stderr is not None and os.path.samestat(os.fstat(self._stderr), self._was)
        except OSError:
            return False
