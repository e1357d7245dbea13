"""`coop plan`: a few steps of a program are recorded; what every budget would cost is simulated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from coop._files import why, write_whole
from coop.cli import launch
from coop.cli.advice import FEWEST_STEPS, STEADY, Plan, Recorded
from coop.cli.budgets import Own, Simulator
from coop.cli.launch import Program
from coop.cli.parser import USAGE_ERROR, Parser, ratios, say
from coop.cli.settings import Settings, notes_beside
from coop.cli.sim import path_of_simulator

NOTHING_RECORDED = 1
INTERRUPTED = 128 + signal.SIGINT

EXAMPLES = """\
The program runs as with coop run, and is ended after so many steps (on a CPU
two more: what coop itself takes) as by sys.exit(). What they would cost
inside smaller budgets is then simulated.

  coop plan train.py --epochs 3
  coop plan --budget 8GiB --picture plan.svg -m package.train
"""


def main(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    program = launch.program_of(parser, options)
    _check(parser, options)
    launch.check(parser, options, program)
    simulator = path_of_simulator(parser.prog)
    try:
        with tempfile.TemporaryDirectory(prefix="coop-plan-") as folder:
            trace = Path(folder) / _name_of_trace(options, program)
            code = _run(program, options, trace)
            recorded = _look_for(trace)
            if recorded is None or recorded.trace_steps == 0:
                return _say_that_it_is_too_little(code, has_begun=recorded is not None)
            if code != 0:
                say(f"coop plan: the program ended {_how(code)}; the plan is of what came before\n")
            is_written = _copy(recorded.trace, options.trace)
            say("coop plan: trying budgets\n")
            picture = options.picture and Path(folder) / f"picture{options.picture.suffix}"
            own = recorded.own and Own(**recorded.own)
            costs = Simulator(simulator, recorded.trace, recorded.trace_steps, own).costs(
                recorded.budget_bytes, options.ratios, picture
            )
            is_written = _copy(picture, options.picture) and is_written
    except KeyboardInterrupt:
        say("coop plan: interrupted\n")
        return INTERRUPTED
    plan = Plan(program, options.device, recorded, costs)
    print(json.dumps(plan.as_dict(), indent=2) if options.json else plan.as_text())
    return 0 if is_written else USAGE_ERROR


def _parser() -> Parser:
    parser = Parser(
        "plan",
        usage="coop plan [<option>...] {<program> | -m <module>} [<argument>...]",
        description="Run a few steps of a PyTorch program, and say what every budget would cost.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("--steps", metavar="N", type=int, default=STEADY, help="to record (%(default)s)")
    launch.add_budget(parser)
    add("--ratios", metavar="A,B", type=ratios, help="try these shares of the peak, such as .8,.6")
    add("--picture", metavar="FILE", type=Path, help="draw it as .svg, .html or .png")
    add("--trace", metavar="FILE", type=Path, help="keep the recording, for coop sim; .gz: gzipped")
    add("--json", action="store_true", help="for programs; what the program prints is on stderr")
    launch.add_program(parser)
    return parser


def _check(parser: Parser, options: Namespace) -> None:
    if not FEWEST_STEPS <= options.steps <= 1000:
        parser.error(f"--steps {options.steps}: it takes {FEWEST_STEPS} to 1000")
    if options.picture is not None:
        launch.check_picture(parser, "--picture", options.picture)
    for name in ("picture", "trace"):
        path = getattr(options, name)
        if path is not None:
            launch.check_writable(parser, f"--{name}", path)
    if "LOCAL_RANK" in os.environ:
        parser.error("it is one plan for all processes: coop plan torchrun ...")


def _name_of_trace(options: Namespace, program: Program) -> str:
    """Pictures have it as their title."""
    if options.trace is not None:
        return options.trace.name
    return f"{Path(program.words[0]).stem}.coop"


def _run(program: Program, options: Namespace, trace: Path) -> int:
    """Its exit code, as shells say it."""
    settings = Settings(
        command="coop plan",
        budget=options.budget,
        device=options.device,
        policy="coop",
        trace=str(trace),
        steps=options.steps,
        report=None,
        is_quiet=True,
        is_live=False,
        is_for_workers=program.is_launcher,
    )
    environment = dict(os.environ)
    settings.put_into(environment)
    sys.stdout.flush()
    # For programs there is to be nothing else on stdout.
    out = sys.stderr if options.json else None
    process = subprocess.Popen(program.command, env=environment, stdout=out)
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            pass  # the program has heard it, too
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return code if code >= 0 else 128 - code


def _look_for(trace: Path) -> Recorded | None:
    """Of several processes it is the first one's. None: it did not begin."""
    for path in (trace, trace.with_name(f"rank0-{trace.name}")):
        if notes_beside(path).exists():
            return Recorded(path, **json.loads(notes_beside(path).read_text()))
    return None


def _copy(made: Path | None, wanted: Path | None) -> bool:
    """Whatever becomes of it, there is a plan."""
    try:
        if wanted is not None and made is not None and made.exists():
            write_whole(wanted, made.read_bytes())
        return True
    except OSError as error:
        say(f"coop plan: {wanted} was not written: {why(error)}\n")
        return False


def _how(code: int) -> str:
    return f"by signal {code - 128}" if code > 128 else f"with exit code {code}"


def _say_that_it_is_too_little(code: int, has_begun: bool) -> int:
    if code == USAGE_ERROR and not has_begun:
        return code  # and why was said: by us, or by the program
    how = f" {_how(code)}" if code != 0 else ""
    say(
        f"coop plan: error: the program ended{how} before {FEWEST_STEPS} steps of it were written "
        "down: steps end with an optimizer's step(), and a program that is killed writes nothing\n"
    )
    return code or NOTHING_RECORDED
