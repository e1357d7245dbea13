"""A process that measures: what it says, for as long as it may take."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

_CHILD = [sys.executable, "-m", "coop.bench.child"]


class TimedOutError(Exception):
    pass


class CrashedError(Exception):
    """And how, with the last that it had to say."""


def one_thread() -> dict[str, str]:
    """For processes on a CPU: what several threads have of it is no step's time."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


class Process:
    """Is told what to do as one line of JSON, and says what it finds, one line each."""

    def __init__(
        self,
        command: Sequence[str],
        wanted: dict,
        environment: dict[str, str] | None = None,
        *,
        is_group: bool = False,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._is_group = is_group
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
            start_new_session=is_group,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.tell(json.dumps(wanted))

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def tell(self, line: str) -> None:
        with suppress(BrokenPipeError):  # it has ended already, and next() says how
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def next(self, until: float | None = None) -> dict | None:
        """What it says next; None: that was all. Until a moment of time.monotonic()."""
        left = None if until is None else max(until - time.monotonic(), 0)
        try:
            line = self._lines.get(timeout=left)
        except queue.Empty:
            raise TimedOutError from None
        if line is not None:
            return json.loads(line)
        code = self._process.wait()
        if code != 0:
            raise CrashedError(_how(code) + self._last_words())
        return None

    def kill(self) -> None:
        if self._process.poll() is None:
            self._kill()
        self._process.wait()
        with suppress(BrokenPipeError):  # of what it was told too late
            self._process.stdin.close()
        self._errors.close()

    def _kill(self) -> None:
        if self._is_group:
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {last}" if last else ""


class Child(Process):
    """Of a case. A group of processes, so that none outlives it."""

    def __init__(self, wanted: dict, command: Sequence[str] = _CHILD) -> None:
        environment = one_thread() if wanted["device"] == "cpu" else None
        super().__init__(command, wanted, environment, is_group=True)


def _how(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    return f"signal {-code}, {signal.Signals(-code).name}"
