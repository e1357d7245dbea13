"""A process that measures a case: what it says, for as long as it may take."""

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

_CHILD = [sys.executable, "-m", "coop.bench.child"]


class TimedOutError(Exception):
    pass


class CrashedError(Exception):
    """And how, with the last that it had to say."""


class Child:
    """A group of processes, so that none outlives it."""

    def __init__(self, wanted: dict, command: list[str] | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command or _CHILD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self._process.stdin.write(json.dumps(wanted) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended already, and next() says how

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def next(self, until: float) -> dict | None:
        """What it says next; None: that was all. Until a moment of time.monotonic()."""
        try:
            line = self._lines.get(timeout=max(until - time.monotonic(), 0))
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
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdin.close()
        self._errors.close()

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {last}" if last else ""


def _how(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    return f"signal {-code}, {signal.Signals(-code).name}"
