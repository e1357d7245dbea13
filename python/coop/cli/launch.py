"""How a program is started that is to have a budget: what `coop run` and `coop plan` share."""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from coop import _native, _versions
from coop._files import unfinished
from coop.cli.parser import Parser, fail

# Programs that only start others, which do the work; and what people call them by.
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
_COMMANDS = {
    ("torchrun",): "torch.distributed.run",
    ("accelerate", "launch"): "accelerate.commands.launch",
    ("accelerate-launch",): "accelerate.commands.launch",
}

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]{1,9})?)(?: ?(?:[KMGT]i?)?B| ?%)?")
_RECORDING = b"coop-trace "  # how each begins
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")


@dataclass(frozen=True)
class Program:
    """A file or a module, with its arguments."""

    is_module: bool
    words: list[str]

    @property
    def is_launcher(self) -> bool:
        if self.is_module:
            return self.words[0] in _LAUNCHERS
        # By its path, `.venv/bin/torchrun`: that very file is run, whatever it does before.
        path = Path(self.words[0])
        return path.is_file() and _launcher_of([path.name, *self.words[1:]]) is not None

    @property
    def arguments(self) -> list[str]:
        """Of Python."""
        return [*(["-m"] if self.is_module else []), *self.words]

    @property
    def command(self) -> list[str]:
        return [sys.executable, *_interpreter_options(), *self.arguments]


def add_budget(parser: Parser) -> None:
    add = parser.add_argument
    add("--budget", metavar="SIZE", help="8GiB, 512MB, 50%% of the memory there is, or bytes")
    add("--device", metavar="NAME", help="whose memory: cuda, cuda:1, cpu; else the GPU's if any")


def add_program(parser: Parser) -> None:
    """The last: all that follows is the program's."""
    add, rest = parser.add_argument, argparse.REMAINDER
    add("-m", dest="module", metavar="MODULE", nargs=rest, help="a module, as with python -m")
    add("program", nargs=rest, help=argparse.SUPPRESS)


def program_of(parser: Parser, options: argparse.Namespace) -> Program:
    is_module = options.module is not None
    words = options.module if is_module else options.program
    if words[:1] == ["--"]:
        del words[0]
    if not words:
        parser.error("which module?" if is_module else "which program?")
    launcher = None if is_module else _launcher_of(words)
    if launcher is not None:
        is_module, words = True, launcher
    return Program(is_module, words)


def _launcher_of(words: list[str]) -> list[str] | None:
    """Its module and arguments, if that is what people call one by."""
    for command, module in _COMMANDS.items():
        if tuple(words[: len(command)]) == command:
            return [module, *words[len(command) :]]
    return None


def check(parser: Parser, options: argparse.Namespace, program: Program) -> None:
    """What can be told without PyTorch, which takes seconds to import."""
    if options.budget is not None and not _is_size(options.budget):
        parser.error(f"{options.budget!r} is no budget: {_meant_by(options.budget)}")
    if options.device is not None and not _DEVICE.fullmatch(options.device):
        parser.error(f"there is no device {options.device!r}; there are cpu, cuda, cuda:1 ...")
    if sys.flags.ignore_environment or sys.flags.no_site:
        parser.error("a budget comes in by the environment: without python's -E, -I and -S, please")
    check_installation(parser)
    if not program.is_module:
        _check_file(parser, program.words[0])


def check_installation(parser: Parser) -> None:
    """PyTorch, and our own library for it."""
    try:
        _versions.check_installed_torch()
    except RuntimeError as error:
        fail(parser.prog, error)
    library = _native.library_path()
    if not Path(library).exists():
        fail(parser.prog, f"coop's native library is not at {library}: install coop again")


def check_picture(parser: Parser, option: str, path: Path) -> None:
    """Before anything takes time."""
    if path.suffix not in (".svg", ".html", ".png"):
        parser.error(f"{option} {path}: pictures are .svg, .html or .png")
    if path.suffix == ".png" and shutil.which("rsvg-convert") is None:
        parser.error(f"{option} {path}: .png needs rsvg-convert (Debian: librsvg2-bin)")


def check_writable(parser: Parser, option: str, path: Path) -> None:
    """Before anything runs."""
    if path.is_dir():
        parser.error(f"{option} {path} is a directory")
    if path.exists() and not path.is_file():
        parser.error(f"{option} {path} is not an ordinary file")
    probe = unfinished(path)
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        parser.error(f"{option} {path} cannot be written: {error.strerror}")


def _is_size(text: str) -> bool:
    """As far as can be told without the machine: that has the last word, when torch is there."""
    size = _SIZE.fullmatch(text)
    return size is not None and 0 < float(size[1]) <= (100 if text.endswith("%") else 1 << 60)


def _meant_by(text: str) -> str:
    close = re.fullmatch(r" *(\d+(?:\.\d+)?) *([kmgt])(i?)b? *", text, re.IGNORECASE)
    if close is not None:
        number, unit, is_binary = close.groups()
        is_decimal = text.rstrip()[-1] in "bB" and not is_binary
        meant = f"{number}{unit.upper()}{'' if is_decimal else 'i'}B"
        if _is_size(meant):
            return f"did you mean {meant}?"
    return "write for example 8GiB, 512MB or 50%"


def _check_file(parser: Parser, path: str) -> None:
    if Path(path).exists():
        if _is_recording(Path(path)):
            parser.error(f"{path} is a recording, not a program; coop sim sweep reads it")
        return
    hint = ""
    if re.fullmatch(r"python[\d.]*", Path(path).name):
        hint = f"; without the word python: {parser.prog} train.py"
    parser.error(f"there is no file {path!r}{hint}")


def _is_recording(path: Path) -> bool:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return file.read(len(_RECORDING)) == _RECORDING
    except (OSError, EOFError):
        return False  # whatever it is, Python has its own word for it


def _interpreter_options() -> list[str]:
    """Those that Python was called with, `python -u -m coop run`: for the program, too."""
    head = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    # Up to what was to be run: `-m coop`, or a file.
    if len(head) > 1 and re.fullmatch(r"-[a-zA-Z]*[mc]", head[-2]):
        others = head[-2][:-1]
        return [*head[:-2], *([others] if others != "-" else [])]
    return head[:-1]
