"""Ctrl-C while a scope begins or ends waits until it has."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType


class ctrl_c_waits:  # noqa: N801
    """What runs inside is done in full; then comes what Ctrl-C does, if it was pressed.

    Half of a budget could neither be used nor left. Python hears of signals on its main thread.
    """

    def __enter__(self) -> None:
        self._came: tuple[int, FrameType | None] | None = None
        self._before: Callable | None = None
        if threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGINT)
        if not callable(before):  # it is ignored, or ends the process
            return
        try:
            signal.signal(signal.SIGINT, self._note)
        except ValueError:  # an interpreter inside of another program: signals are not ours
            return
        self._before = before

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is None:
            return
        if signal.getsignal(signal.SIGINT) == self._note:  # else somebody inside has put its own
            signal.signal(signal.SIGINT, self._before)
        if self._came is not None:
            self._before(*self._came)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = number, frame
