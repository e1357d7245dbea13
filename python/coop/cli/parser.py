"""How every sub-command reads its arguments: help that fits a screen, complaints of one line."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentTypeError
from typing import NoReturn

USAGE_ERROR = 2


def fail(who: str, why: object) -> NoReturn:
    """Say so in one line, and end."""
    print(f"{who}: error: {one_line(why)}", file=sys.stderr)
    sys.exit(USAGE_ERROR)


def say(text: str) -> None:
    """On stderr, at once, so that the lines of several processes do not mix."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass  # there is nobody to read it


def one_line(why: object) -> str:
    """Of an error's text what comes first; our own begin with our name."""
    return str(why).strip().partition("\n")[0].removeprefix("coop: ")


def ratios(text: str) -> list[float]:
    """An argument's type."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < ratio <= 1 for ratio in found):
        raise ArgumentTypeError(f"{text!r} is not shares of the peak, such as .8,.6")
    return found


class Parser(argparse.ArgumentParser):
    def __init__(self, command: str, **options) -> None:
        super().__init__(
            prog=f"coop {command}",
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                prog, max_help_position=22, width=80
            ),
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        fail(self.prog, f"{message} ({self.prog} --help)")
