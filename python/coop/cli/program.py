"""The program's side of `coop run` and `coop plan`: its budget begins when it imports torch, and
ends with it.

Not before, because programs set variables for PyTorch (OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES) and
then import it. Nothing ends the budget: what is evicted when the program is over stays so.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from coop._text import as_bytes, as_time
from coop.cli.last_words import LastWords
from coop.cli.parser import say
from coop.cli.rank import rank, who
from coop.cli.settings import Settings

if TYPE_CHECKING:
    import torch

STDERR = 2


def prepare() -> None:
    settings = Settings.taken_from(os.environ)
    if settings is None:
        return
    process = os.getpid()
    atexit.register(_complain_if_missed, settings, process)
    last_words = LastWords()

    def begin() -> None:
        if os.getpid() == process:
            return _begin(settings, last_words)
        last_words.are_not_needed()  # forked before: what the program starts has no budget
        if os.getppid() != process:  # a daemon: this is all that is left of the program
            say(
                f"coop: torch was imported after a fork, and {settings.command} is not for that: "
                "there is no budget\n"
            )
        return None

    if "torch" in sys.modules:  # by a .pth file
        begin()
    else:
        _when_imported("torch", begin)


def _when_imported(name: str, then: Callable[[], None]) -> None:
    """Many only look for it first (`importlib.util.find_spec`): that is not it yet."""

    class Finder:
        @staticmethod
        @_as_if_of_importlib
        def find_spec(wanted, path=None, target=None):
            if wanted != name:
                return None
            others = [it for it in sys.meta_path if it is not Finder]
            found = (it.find_spec(wanted, path, target) for it in others)
            spec = next((it for it in found if it is not None), None)
            if spec is not None and spec.loader is not None:
                watch(spec.loader)
            return spec

    def watch(loader) -> None:
        execute = loader.exec_module

        @_as_if_of_importlib
        def exec_module(module) -> None:
            del loader.exec_module  # as it was
            execute(module)
            sys.meta_path.remove(Finder)
            then()

        loader.exec_module = exec_module

    sys.meta_path.insert(0, Finder)


def _as_if_of_importlib(function: Callable) -> Callable:
    """Where an import fails, Python leaves out of the traceback what is importlib's, by its file:
    what stands between that is to go, too."""
    file = importlib._bootstrap._load_unlocked.__code__.co_filename
    function.__code__ = function.__code__.replace(co_filename=file)
    return function


def _complain_if_missed(settings: Settings, process: int) -> None:
    if _has_begun or os.getpid() != process:
        return
    command = settings.command
    if "torch" in sys.modules:
        say(f"coop: torch was imported, and {command} did not see it: there was no budget\n")
    # `coop plan` has its own word for it.
    elif (asked := settings.report or settings.trace) and command == "coop run":
        say(f"{command}: {asked} was not written: the program did not import torch\n")


_has_begun = False


def _begin(settings: Settings, last_words: LastWords) -> None:
    global _has_begun
    _has_begun = True
    try:
        from coop._log import only_if_asked

        only_if_asked()
        from coop import _budget
        from coop._stats import stats
        from coop.cli import memory, reporting, tracing

        device = memory.device_of_this_process(settings.device)
        size = settings.budget or memory.free_bytes(device)
        budget = _budget.budget(size, device=device, policy=settings.policy)
        _budget.put_around_the_program(budget)
        recording = None
        if settings.report is not None:
            path = _for_this_rank(Path(settings.report))
            recording = reporting.Recording(path, settings, budget.bytes)
        elif settings.trace is not None:
            path = _for_this_rank(Path(settings.trace))
            recording = tracing.Recording(path, settings, budget.bytes)
    except Exception as error:  # whatever it is, nothing may go on without a budget
        last_words.say(settings.command, error)
    last_words.are_not_needed()
    # Once now: an import at the end would run code by exec(), at which Python forgets that it was
    # Ctrl-C that ended the program.
    stats()
    report = (budget.device, settings.is_quiet, time.perf_counter_ns(), os.getpid())
    atexit.register(_report, *report)
    if recording is not None:
        atexit.register(recording.end)
    if settings.is_live and rank() in ("", "0"):
        _show_live(budget.device)


def _show_live(device: torch.device) -> None:
    """On stderr, as all that we say."""
    from coop.cli import live

    if live.can_be_shown(STDERR):
        atexit.register(live.Live(STDERR, device).stop)


def _for_this_rank(path: Path) -> Path:
    return path.with_name(f"rank{rank()}-{path.name}") if rank() else path


def _report(device: torch.device, is_quiet: bool, started: int, process: int) -> None:
    """Five lines, when all else is done; for the log alone, if it is to be quiet."""
    if os.getpid() != process:
        return  # forked; it had no budget
    from coop._stats import log_stats, stats

    log_stats("ends with the program", device)
    if is_quiet:
        return
    counted = stats(device)
    took = time.perf_counter_ns() - started
    most = f", mostly {counted.by_op[0].op}" if counted.by_op else ""
    rows = {
        "budget": f"{as_bytes(counted.budget_bytes)} on {device.type}",
        "peak": as_bytes(counted.peak_bytes),
        "evicted": f"{counted.evictions:,} tensors",
        "recomputed": f"{counted.recomputations:,} operators{most}",
        "cost": f"{as_time(counted.recomputing_ns)} of recomputing in {as_time(took)}, "
        f"{counted.recomputing_ns / took:.1%}",
    }
    say("".join(f"{who()}: {name:<11}{value}\n" for name, value in rows.items()))
