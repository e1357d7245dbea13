"""`coop sim`: the native simulator, by another name."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from coop._native import simulator_path
from coop.cli.parser import fail


def main(arguments: Sequence[str]) -> NoReturn:
    path = path_of_simulator("coop sim")
    try:
        os.execv(path, [path, *arguments])
    except OSError as error:
        fail("coop sim", f"{path} cannot be run: {error.strerror}")


def command() -> NoReturn:
    """`coop-sim`, where coop is installed: as documents have it."""
    main(sys.argv[1:])


def path_of_simulator(who: str) -> str:
    path = simulator_path()
    if not Path(path).exists():
        fail(
            who,
            "coop was installed without its simulator, which needs (by their Debian names) "
            "libcli11-dev, libsimdjson-dev and zlib1g-dev: install those, then coop again",
        )
    return path
