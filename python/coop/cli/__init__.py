"""The command `coop`: one file for each sub-command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import coop
from coop.cli.parser import fail, say

COMMANDS = ("run", "plan", "report", "bench", "doctor", "sim")

HELP = """\
usage: coop <command> [<argument>...]

A memory budget for PyTorch programs. What does not fit is dropped and computed
again when it is needed; the result stays the same, bit for bit.

  run      run a program inside a budget, unchanged
  plan     what every budget would cost a program, from a few of its steps
  report   what happens in memory, drawn: one HTML file
  bench    what budgets cost ten networks, beside what others do about memory
  doctor   what there is here, whether coop works with it, and what to do if not
  sim      the simulator: what other budgets would cost a recorded program

  coop run --budget 8GiB train.py --epochs 3

`coop <command> --help` says more. `coop --version` says which coop this is.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """What the sub-command says is the exit code; 2 if it was called in a wrong way, or what it
    says could not be written."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_what_is_closed()
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        say("coop: interrupted\n")
        return 128 + signal.SIGINT
    except OSError as error:
        # Python would try once more to write it when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return 128 + signal.SIGPIPE  # `coop doctor | head -1` has seen enough
        fail("coop", error)


def _open_what_is_closed() -> None:
    """Python has None for it (`coop run train.py >&-`), and no file of ours is to get its number.
    Programs that are run find it closed, as they would without us."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", errors="backslashreplace"))  # noqa: PTH123, SIM115


def _run(words: list[str]) -> int:
    command = words[0] if words else "--help"
    if command in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0 if words else 2
    if command in ("-V", "--version"):
        print(f"coop {coop.__version__}")
        return 0
    if command not in COMMANDS:
        close = get_close_matches(command, COMMANDS, 1)
        meant = f"did you mean {close[0]}?" if close else "there are " + ", ".join(COMMANDS)
        if command.endswith(".py"):
            meant = f"did you mean coop run {command}?"
        fail("coop", f"there is no command {command!r}; {meant}")
    return import_module(f"coop.cli.{command}").main(words[1:])
