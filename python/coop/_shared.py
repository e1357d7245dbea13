"""What is there for all budgets, however many are in force, and in whatever order they end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager


class Shared:
    """Scopes that are entered with the first of those who need them, and left with the last."""

    def __init__(self, *scopes: Callable[[], AbstractContextManager[object]]) -> None:
        self._scopes = scopes
        self._lock = threading.Lock()
        self._users = 0
        self._entered = ExitStack()

    @contextmanager
    def used(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                with ExitStack() as stack:
                    for scope in self._scopes:
                        stack.enter_context(scope())
                    self._entered = stack.pop_all()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._entered.close()
