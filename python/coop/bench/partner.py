"""The process of one way of training, which takes turns with others step by step.

It is told on stdin what to train, as one line of JSON. Then it says on stdout how many steps it has
made, and makes the next when there is another line; after the last it says what has come of them,
or why nothing has. When stdin ends so does it, in the middle of a step as well: whoever started it
is gone.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import TextIO

from coop.bench.machine import Machine
from coop.bench.outcome import try_to
from coop.bench.training import Trainer
from coop.bench.ways import way_of


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    told = json.loads(lines.get())
    made = itertools.count()

    def wait_for_turn() -> None:
        _tell(out, made=next(made))
        lines.get()

    found = try_to(lambda: _train(**told, turn=wait_for_turn))
    _tell(out, **(found if found["status"] == "ok" else {"lost": found}))


def _train(
    network: str, batch: int | None, way: dict, warm_up: int, timed: int, turn: Callable[[], None]
) -> dict:
    machine = Machine("cpu")
    machine.prepare()
    trainer = Trainer.of(network, machine, batch)
    run = trainer.run(way_of(way, trainer.network, machine), warm_up, timed, turn)
    return {"run": asdict(run)}


def _tell(out: TextIO, **what: object) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


def _listen(lines: queue.SimpleQueue[bytes]) -> None:
    """Without a buffer, whose lock Python would wait for when it ends by itself."""
    with open(0, "rb", buffering=0, closefd=False) as told:
        for line in told:
            lines.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
