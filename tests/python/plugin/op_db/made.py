"""How many bytes operators made inside a budget, and how many of them were evicted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from coop import _plugin

EVICTED = "evicted"


class Made:
    """By taint ("none": may be evicted), and as EVICTED those that were, at least once."""

    def __init__(self, *, is_counted: bool = False) -> None:
        self._is_counted = is_counted
        self.bytes: dict[str, int] = {}
        self._add(-1)

    def _add(self, sign: int) -> None:
        if not self._is_counted:
            return
        now = {**torch.ops.coop.made_bytes(), EVICTED: _plugin.stats()["evicted_once_bytes"]}
        for why, count in now.items():
            self.bytes[why] = self.bytes.get(why, 0) + sign * count

    def stop(self) -> None:
        self._add(+1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is made meanwhile is not the operator's."""
        self._add(+1)
        yield
        self._add(-1)
