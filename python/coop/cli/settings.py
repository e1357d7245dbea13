"""What `coop run` and `coop plan` tell the Python that runs the program.

That is an ordinary `python train.py`: arguments, `__main__`, tracebacks, signals and exit code are
Python's own, because nothing of ours is around the program. What is ours comes in by a folder in
PYTHONPATH, whose `sitecustomize` Python imports when it starts. That one takes the folder and these
settings out of the environment again: the program finds it as it would be, and what it starts in
turn is plain.
"""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass
from pathlib import Path

STARTUP = str(Path(__file__).with_name("startup"))

_VARIABLE = "COOP_RUN"
_PATH = "PYTHONPATH"


def notes_beside(trace: Path) -> Path:
    """What `coop plan` must know of a recording, and is not in it."""
    return trace.with_name(f"{trace.name}.json")


@dataclass(frozen=True)
class Settings:
    command: str
    """Who says it: "coop run"."""
    budget: str | None
    """None: what is free, less a margin."""
    device: str | None
    policy: str
    trace: str | None
    steps: int | None
    """So many are recorded; then the program is to end, unless it is for a report. None: all."""
    report: str | None
    """Of what is recorded."""
    is_quiet: bool
    is_live: bool
    """A line at the foot of the terminal."""
    is_for_workers: bool
    """Not for the program itself but for what it launches, as torchrun does."""

    def put_into(self, environment: MutableMapping[str, str]) -> None:
        path = environment.get(_PATH)
        environment[_VARIABLE] = json.dumps({**asdict(self), "path": path})
        environment[_PATH] = STARTUP if not path else f"{STARTUP}{os.pathsep}{path}"

    @classmethod
    def taken_from(cls, environment: MutableMapping[str, str]) -> Settings | None:
        """They are gone from there then. None if they are not for this process."""
        fields = json.loads(environment[_VARIABLE])
        if fields["is_for_workers"]:  # this is the launcher: they stay, for those that it starts
            environment[_VARIABLE] = json.dumps({**fields, "is_for_workers": False})
            return None
        path = fields.pop("path")
        settings = cls(**fields)
        del environment[_VARIABLE]
        if path is None:
            del environment[_PATH]
        else:
            environment[_PATH] = path
        return settings
