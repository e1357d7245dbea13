"""Ways of training that take turns, step by step, each in a process of its own.

So whatever else the machine does meets all of them alike. `coop.bench.partner` is such a process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from coop.bench.outcome import LostError
from coop.bench.process import CrashedError, Process, one_thread
from coop.bench.training import Run
from coop.bench.ways import Way

_PARTNER = [sys.executable, "-m", "coop.bench.partner"]


class Partner(Process):
    """It belongs to the group of whoever starts it, and ends with that."""

    def __init__(
        self,
        network: str,
        way: Way,
        warm_up: int,
        timed: int,
        batch: int | None = None,
        command: Sequence[str] = _PARTNER,
    ) -> None:
        told = {"network": network, "batch": batch, "way": way.told}
        super().__init__(command, {**told, "warm_up": warm_up, "timed": timed}, one_thread())
        self._run: Run | None = None
        self.lost: LostError | None = None

    @property
    def is_over(self) -> bool:
        return self._run is not None or self.lost is not None

    def wait(self) -> None:
        """Until it is ready for the next step, or there is none."""
        try:
            said = self.next()
        except CrashedError as error:
            said = {"lost": {"status": "crashed", "why": str(error)}}
        if said is None:
            said = {"lost": {"status": "crashed", "why": "it ended without a word"}}
        if "run" in said:
            self._run = Run.said(said["run"])
        elif "lost" in said:
            self.lost = LostError(said["lost"])

    def step(self) -> None:
        if not self.is_over:
            self.tell("")
            self.wait()

    def run(self) -> Run:
        """What has come of all its steps."""
        if self.lost is not None:
            raise self.lost
        return self._run


def take_turns(
    base: Partner, others: Sequence[Partner], beat: Callable[[], None] = lambda: None
) -> None:
    """All their steps, for as long as there is another than the one they are compared with. Nobody
    begins before all are there."""
    for partner in (base, *others):
        partner.wait()
    while base.lost is None and not all(it.is_over for it in others):
        beat()
        for partner in (base, *others):
            partner.step()
