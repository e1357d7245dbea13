"""`coop run`: a program inside a budget, unchanged."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from coop.cli import launch
from coop.cli.advice import STEADY
from coop.cli.parser import Parser
from coop.cli.settings import Settings
from coop.cli.sim import path_of_simulator

POLICIES = ("coop", "coop-paper", "dtr", "dte", "lru", "largest", "random")
EXPERIMENTS = ("coop-paper-no-window", "coop-paper-no-partition", "coop-online")

EXAMPLES = """\
The program is run as `python` would run it. Without --budget it may have what
is free when it imports torch: on a GPU less 1 GiB, else less a tenth.

  coop run --budget 8GiB train.py --epochs 3
  coop run --budget 50% -m package.train
  coop run --budget 8GiB --report mem.html train.py
  coop run --budget 8GiB torchrun --nproc-per-node 2 train.py
"""


def main(arguments: Sequence[str]) -> NoReturn:
    parser = _parser()
    options = parser.parse_args(arguments)
    program = launch.program_of(parser, options)
    if options.policy not in POLICIES + EXPERIMENTS:
        parser.error(f"there is no policy {options.policy!r}; there are " + ", ".join(POLICIES))
    if options.trace is not None:
        launch.check_writable(parser, "--trace", Path(options.trace))
    if options.report is not None:
        launch.check_writable(parser, "--report", Path(options.report))
        path_of_simulator(parser.prog)
        if options.trace is not None:
            parser.error("either --report or --trace: coop report draws a trace, too")
    launch.check(parser, options, program)
    settings = Settings(
        command=parser.prog,
        budget=options.budget,
        device=options.device,
        policy=options.policy,
        trace=options.trace and str(Path(options.trace).absolute()),
        steps=STEADY if options.report else None,
        report=options.report and str(Path(options.report).absolute()),
        is_quiet=options.quiet,
        is_live=options.live,
        is_for_workers=program.is_launcher,
    )
    settings.put_into(os.environ)
    sys.stdout.flush()
    os.execv(sys.executable, program.command)


def _parser() -> Parser:
    parser = Parser(
        "run",
        usage="coop run [<option>...] {<program> | -m <module>} [<argument>...]",
        description="Run a PyTorch program inside a memory budget, unchanged.",
        epilog=EXAMPLES,
    )
    launch.add_budget(parser)
    add = parser.add_argument
    add("--policy", metavar="NAME", default="coop", help="what decides which tensors go (coop)")
    add("--trace", metavar="FILE", help="record what runs, for coop sim; .gz is gzipped")
    add("--report", metavar="FILE", help="draw what happens in memory in the first steps, as .html")
    add("--live", action="store_true", help="what happens, in the last row of the terminal")
    add("-q", "--quiet", action="store_true", help="without the five lines at the end")
    launch.add_program(parser)
    return parser
