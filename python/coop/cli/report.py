"""`coop report`: what happened in memory, as one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import coop
from coop._files import why, write_whole
from coop._text import as_bytes, as_size
from coop.cli import launch
from coop.cli.parser import Parser, fail
from coop.cli.sim import path_of_simulator

_PAGE = Path(__file__).with_name("page")
_SCRIPTS = ("text", "drawing", "memory_chart", "pool_map", "lists", "page")

EXAMPLES = """\
A trace is what coop.record, coop run --trace and coop plan --trace write. It is
run in the budget that it was recorded in, unless there is another here.

  coop report step.coop --ratio .5
  coop report step.coop --budget 8GiB -o mem.html
  coop report before.coop after.coop --budget 8GiB
"""


def main(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.budget is not None and options.ratio is not None:
        parser.error("either --budget or --ratio")
    launch.check_writable(parser, "-o", options.output)
    simulator = path_of_simulator(parser.prog)
    words = [f"--{name}={value}" for name in _PASSED_ON if (value := getattr(options, name))]
    words += ["--inplace"] if options.inplace else []
    try:
        runs = draw(simulator, options.traces, words, options.output)
    except OSError as error:
        fail(parser.prog, f"{options.output} was not written: {why(error)}")
    except RuntimeError as error:
        fail(parser.prog, error)
    if not options.quiet:
        print(f"{options.output}: open it in a browser", file=sys.stderr)
        for run in runs:
            if run["status"] != "ok":
                print(_does_not_fit(run), file=sys.stderr)
    return 0


_PASSED_ON = ("budget", "ratio", "policy", "steps")


def _parser() -> Parser:
    parser = Parser(
        "report",
        usage="coop report [<option>...] <trace> [<trace>...]",
        description="Draw what happens in memory: one HTML file, which loads nothing.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("traces", metavar="TRACE", nargs="+", help="recorded; several are put side by side")
    add("--budget", metavar="SIZE", help="8GiB, 512MB, or bytes")
    add("--ratio", metavar="R", help="of the memory that it takes without coop, such as .5")
    add("--policy", metavar="NAME", help="what decides which tensors go")
    add("--steps", metavar="N", help="of which the last is shown; without: all of the trace")
    add("--inplace", action="store_true", help="DTR logs: tensors are changed where they are")
    add("-o", dest="output", metavar="FILE", type=Path, default=Path("mem.html"), help="mem.html")
    add("-q", "--quiet", action="store_true", help="say nothing when it is done")
    return parser


def draw(
    simulator: str,
    traces: Sequence[str],
    words: Sequence[str],
    page: Path,
    out_of_memory: BaseException | None = None,
) -> list[dict]:
    """What the simulator said of each. Raises RuntimeError with what it has to say, and OSError.

    out_of_memory: the error that ended what was recorded, if one did.
    """
    runs = []
    for trace in traces:
        command = [simulator, "report", trace, *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            raise RuntimeError(said.removeprefix("coop-sim: error: ") or f"{simulator} has failed")
        runs.append(json.loads(done.stdout))
        if out_of_memory is not None:
            runs[-1]["advice"].insert(0, _how_it_ended(out_of_memory))
    write_whole(page, page_of(runs).encode())
    return runs


def _does_not_fit(run: dict) -> str:
    """That is a result, as it is for the simulator: the page shows what is in the way."""
    text = f"{run['name']}: does not fit into {as_bytes(run['budget_bytes'])}"
    smallest = run["smallest_budget_bytes"]
    if smallest is not None:
        ratio = math.ceil(1000 * smallest / run["peak_bytes"]) / 1000
        return f"{text}; {as_size(smallest)} is the smallest that was found to work, ratio {ratio}"
    return f"{text}; no budget was found that it fits into" if run["is_floor_known"] else text


def _how_it_ended(error: BaseException) -> str:
    """A trace has what was done. What could not be is known only to the error."""
    what = str(error).partition("\n")[0].removeprefix("coop: out of memory: ")
    return f"The program ran out of memory: {what} This is what ran until then."


def page_of(runs: Sequence[dict]) -> str:
    """What the simulator said of each run, with what draws it."""
    title = ", ".join(f"Memory of {run['name']}" for run in runs)
    parts = {
        "title": html.escape(title),
        "style": (_PAGE / "page.css").read_text(encoding="utf-8"),
        "script": "\n".join(
            (_PAGE / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS
        ),
        "report": _inside_a_script({"version": coop.__version__, "runs": list(runs)}),
    }
    template = (_PAGE / "page.html").read_text(encoding="utf-8")
    # All at once: what is put in is not looked at again.
    return re.sub("@@(\\w+)@@", lambda found: parts[found[1]], template)


def _inside_a_script(data: object) -> str:
    """JSON that cannot end the element that it is in, whatever names there are."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
