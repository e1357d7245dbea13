"""A recording: what runs inside, as the simulator reads it."""

from __future__ import annotations

import gzip
import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import torch

from coop import _plugin
from coop._budget import budget
from coop._ctrl_c import ctrl_c_waits
from coop._files import unfinished
from coop._log import log
from coop._names import Names
from coop._text import as_bytes

# Not all of it: the system would not let a process fork that has taken as much as there is.
_PLENTY = "90%"


class record:  # noqa: N801
    """Write down what runs inside, for `coop report` and `coop-sim`: every operator, its module,
    what it cost, its memory.

        with coop.record("step.coop"):
            train_step()

    path: of the file, gzipped if it ends in ".gz". It is there, whole, when the scope has ended;
        also if that was by an exception: then it has what ran until then.
    decisions: write down what was evicted and recomputed, too, so that `coop-sim check` can tell
        whether the simulator does the same.

    device: whose budget, where several are in force; without it, the one that began last.

    Inside a budget, that one is recorded; otherwise there is one for as long, of nearly all the
    memory that there is. Everything that is there when it begins counts as having come from
    outside.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        decisions: bool = False,
        device: torch.device | str | None = None,
    ) -> None:
        self.path = Path(os.fspath(path))
        self.decisions = bool(decisions)
        self.device = _plugin.as_device(device)
        self._scope: ExitStack | None = None
        self._is_kept = True

    def __enter__(self) -> record:
        if self._scope is not None:
            raise RuntimeError("coop: this recording is in progress already")
        _plugin.load()
        scope, self._is_kept = None, True
        try:
            with ctrl_c_waits():
                scope = self._scope = self._begin()
            return self
        except BaseException:
            if scope is not None:  # Ctrl-C: nobody will leave what has begun
                self._is_kept = False
                self._close()
            raise

    def _begin(self) -> ExitStack:
        with ExitStack() as stack:
            beside = file_beside(self.path)
            stack.callback(beside.unlink, missing_ok=True)
            if not torch.ops.coop.has_budget(self.device):
                stack.enter_context(budget(_PLENTY, device=self.device))
            torch.ops.coop.begin_recording(self.decisions, self.device)
            stack.callback(self._end, beside, os.getpid())
            stack.enter_context(Names())
            log.info("%r begins", self)
            return stack.pop_all()

    def step(self) -> None:
        """A training step begins here. What comes before the first is preparation."""
        torch.ops.coop.record_step()

    def annotate(self, text: str) -> None:
        """A remark at this point, such as "backward"."""
        torch.ops.coop.record_remark(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._close()
        finally:
            if self._scope is not None:  # Ctrl-C, before it was made to wait
                self._close()

    def _close(self) -> None:
        with ctrl_c_waits():
            assert self._scope is not None
            scope, self._scope = self._scope, None
            scope.close()

    def _end(self, beside: Path, process: int) -> None:
        if os.getpid() != process:
            return  # a fork: the recording is its parent's
        text = torch.ops.coop.end_recording().encode()
        if not self._is_kept:
            return  # an earlier one stays
        beside.write_bytes(gzip.compress(text) if self.path.suffix == ".gz" else text)
        beside.replace(self.path)
        log.info("%r has ended: %s", self, as_bytes(self.path.stat().st_size))

    def __repr__(self) -> str:
        return f"coop.record({str(self.path)!r})"


def file_beside(path: Path) -> Path:
    """Found out before anything runs: whether there can be a file."""
    if path.is_dir():
        raise IsADirectoryError(f"coop: {path} is a directory, and a recording is a file")
    if path.exists() and not path.is_file():  # it would be replaced
        raise OSError(f"coop: {path} is not an ordinary file, as a recording is")
    beside = unfinished(path)
    try:
        beside.write_bytes(b"")
    except OSError as error:
        why = f"coop: no recording can be written there: {error.strerror}"
        raise type(error)(error.errno, why, str(path)) from None
    return beside
