"""`coop run`: a program inside a budget, unchanged."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from coop import _native, _versions
from coop.cli.parser import Parser
from coop.cli.settings import Settings

POLICIES = ("coop", "coop-paper", "dtr", "dte", "lru", "largest", "random")
_EXPERIMENTS = ("coop-paper-no-window", "coop-paper-no-partition", "coop-online")

# Programs that only start others, which do the work.
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch")

_SIZE = re.compile(r"(\d+(?:\.\d{1,9})?)(?: ?(?:[KMGT]i?)?B|%)?")
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")

EXAMPLES = """\
The program is run as `python` would run it. Without --budget it may have what
is free when it imports torch: on a GPU less 1 GiB, else less a tenth.

  coop run --budget 8GiB train.py --epochs 3
  coop run --budget 50% -m package.train
  coop run --budget 8GiB torchrun --nproc-per-node 2 train.py
"""


def main(arguments: Sequence[str]) -> NoReturn:
    parser = _parser()
    options = parser.parse_args(arguments)
    command = options.module if options.module is not None else options.program
    if command[:1] == ["--"]:
        del command[0]
    is_module = options.module is not None
    if not command:
        parser.error("which module?" if is_module else "which program?")
    if not is_module and command[0] == "torchrun":
        is_module, command[0] = True, _LAUNCHERS[0]

    _check(parser, options)
    if not is_module:
        _check_program(parser, command[0])
    settings = Settings(
        budget=options.budget,
        device=options.device,
        policy=options.policy,
        trace=options.trace and str(Path(options.trace).absolute()),
        is_quiet=options.quiet,
        is_for_workers=is_module and command[0] in _LAUNCHERS,
    )
    settings.put_into(os.environ)
    words = [sys.executable, *_interpreter_options(), *(["-m"] if is_module else []), *command]
    sys.stdout.flush()
    os.execv(sys.executable, words)


def _parser() -> Parser:
    parser = Parser(
        "run",
        usage="coop run [<option>...] {<program> | -m <module>} [<argument>...]",
        description="Run a PyTorch program inside a memory budget, unchanged.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("--budget", metavar="SIZE", help="8GiB, 512MB, 50%% of the memory there is, or bytes")
    add("--device", metavar="NAME", help="whose memory: cuda, cuda:1, cpu; else the GPU's if any")
    add("--policy", metavar="NAME", default="coop", help="what decides which tensors go (coop)")
    add("--trace", metavar="FILE", help="record what runs, for coop sim; .gz is gzipped")
    add("-q", "--quiet", action="store_true", help="without the five lines at the end")
    rest = argparse.REMAINDER
    add("-m", dest="module", metavar="MODULE", nargs=rest, help="a module, as with python -m")
    add("program", nargs=rest, help=argparse.SUPPRESS)
    return parser


def _check(parser: Parser, options: argparse.Namespace) -> None:
    """What can be told without PyTorch, which takes seconds to import."""
    if options.budget is not None and not _is_size(options.budget):
        parser.error(f"{options.budget!r} is no budget: write for example 8GiB, 512MB or 50%")
    if options.device is not None and not _DEVICE.fullmatch(options.device):
        parser.error(f"there is no device {options.device!r}; there are cpu, cuda, cuda:1 ...")
    if options.policy not in POLICIES + _EXPERIMENTS:
        parser.error(f"there is no policy {options.policy!r}; there are " + ", ".join(POLICIES))
    if options.trace is not None:
        _check_writable(parser, Path(options.trace))
    if sys.flags.ignore_environment or sys.flags.no_site:
        parser.error("a budget comes in by the environment: without python's -E, -I and -S, please")
    try:
        _versions.check_installed_torch()
    except RuntimeError as error:
        parser.error(str(error))
    library = _native.library_path()
    if not Path(library).exists():
        parser.error(f"coop's native library is not at {library}: install coop again")


def _is_size(text: str) -> bool:
    """As far as can be told without the machine: that has the last word, when torch is there."""
    size = _SIZE.fullmatch(text)
    return size is not None and 0 < float(size[1]) <= (100 if text.endswith("%") else 1 << 60)


def _check_writable(parser: Parser, path: Path) -> None:
    if path.is_dir():
        parser.error(f"--trace {path} is a directory")
    probe = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        parser.error(f"--trace {path} cannot be written: {error.strerror}")


def _check_program(parser: Parser, program: str) -> None:
    if Path(program).exists():
        return
    hint = ""
    if re.fullmatch(r"python[\d.]*", Path(program).name):
        hint = "; without the word python: coop run train.py"
    parser.error(f"there is no file {program!r}{hint}")


def _interpreter_options() -> list[str]:
    """Those that Python was called with, `python -u -m coop run`: for the program, too."""
    head = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    # Up to what was to be run: `-m coop`, or a file.
    if len(head) > 1 and re.fullmatch(r"-[a-zA-Z]*[mc]", head[-2]):
        others = head[-2][:-1]
        return [*head[:-2], *([others] if others != "-" else [])]
    return head[:-1]
