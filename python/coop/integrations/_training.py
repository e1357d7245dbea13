"""What the callbacks share: a budget from when training begins to when it is over."""

from __future__ import annotations

import inspect
from operator import sub

import torch

from coop._budget import budget
from coop._stats import stats


class BudgetOfTraining:
    def __init__(self, size: int | str, options: dict[str, object]) -> None:
        inspect.signature(budget).bind(size, **options)  # what is misspelt is told at once
        self._size = size
        self._options = options
        self._budget: budget | None = None
        self._counted: tuple[int, ...] = ()

    def begin(self, device: torch.device) -> None:
        """On the framework's device, unless another is named. Nothing, if it has begun: frameworks
        begin anew when a batch was too large."""
        if self._budget is None:
            # Not before: only now is it settled which of several GPUs is this process's.
            self._budget = budget(self._size, **{"device": device, **self._options}).__enter__()
            self.news()

    def end(self, error: BaseException | None = None) -> None:
        """Nothing, if it has ended."""
        ended, self._budget = self._budget, None
        if ended is not None:
            ended.__exit__(type(error) if error else None, error, None)

    def news(self) -> dict[str, float]:
        """For the framework's log: what has happened since it was last asked."""
        if self._budget is None:
            return {}
        now = stats(self._budget.device)
        counted = (now.evictions, now.recomputations, now.recomputing_ns)
        evictions, recomputations, ns = map(sub, counted, self._counted or (0, 0, 0))
        self._counted = counted
        return {
            "coop/peak_bytes": now.peak_bytes,
            "coop/evictions": evictions,
            "coop/recomputations": recomputations,
            "coop/recomputing_seconds": ns / 1e9,
        }
