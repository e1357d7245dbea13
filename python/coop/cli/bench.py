"""`coop bench`: what budgets cost networks, beside plain PyTorch and beside what else there is."""

from __future__ import annotations

import argparse
import os
import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from coop.bench import session
from coop.bench.catalog import NETWORKS
from coop.bench.commit import commit_of_this
from coop.bench.grid import PEERS_OF, Wanted
from coop.bench.results import NotResultsError, Results, last_of_each, read
from coop.bench.runner import RefusedError
from coop.bench.session import Limits, Session
from coop.bench.showing import Showing
from coop.cli import launch
from coop.cli.parser import Parser, ratios, say
from coop.cli.run import EXPERIMENTS, POLICIES

WARM_UP = 6  # until plans have settled
SMOKE = {
    "networks": ("bilstm",),
    "ratios": (0.6,),
    "policies": ("coop", "dtr"),
    "warm_up": 4,
    "timed": 2,
}
SECONDS = {"s": 1, "min": 60, "h": 3600}
BYTES = {"MiB": 1 << 20, "GiB": 1 << 30, "MB": 10**6, "GB": 10**9}

DESCRIPTION = """\
Train networks in less memory, plain and beside others: resnet50 resnet152
inception-v3 swin-t bert-large gpt-2.7b bilstm spos llama-1b unet, or all."""
EXAMPLE = "  coop bench bert-large spos --device cuda --time-limit 9min --resume\n"


def main(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    showing = Showing(options.json, options.plot, options.all)
    try:
        if options.show is not None:
            return _show(parser, options, showing)
        wanted = _wanted(parser, options)
        results = Results.kept_in(options.results, options.commit or commit_of_this())
        benchmark = Session(wanted, results, options.resume, _tell)
        if options.dry_run:
            print(benchmark.in_words())
            return session.DONE
        launch.check_installation(parser)
        return benchmark.run(Limits(options.cell_limit, options.time_limit), showing)
    except (NotResultsError, RefusedError) as error:
        parser.error(str(error))


def _tell(text: str) -> None:
    say(f"coop bench: {text}")


def _show(parser: Parser, options: Namespace, showing: Showing) -> int:
    if not options.show.is_file():
        parser.error(f"--show {options.show}: there is no such file")
    cells = last_of_each(read(options.show))
    cells = [it for it in cells if not options.networks or it["network"] in options.networks]
    if not cells:
        parser.error(f"--show {options.show}: nothing was measured")
    showing.show(cells)
    return session.DONE


def _parser() -> Parser:
    parser = Parser(
        "bench",
        usage="coop bench [<option>...] [<network>...]",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    add, hidden = parser.add_argument, argparse.SUPPRESS
    add("networks", nargs="*", help=hidden)
    add("--ratios", metavar="A,B", type=ratios, default=[0.8, 0.6, 0.5, 0.4],
        help="budgets, as shares of plain's peak (.8,.6,.5,.4)")  # fmt: skip
    add("--policies", metavar="A,B", type=_some_of("policy", (*POLICIES, *EXPERIMENTS, "none")),
        default=("coop", "coop-paper", "dtr", "dte"),
        help="what decides which tensors go (coop,coop-paper,dtr,dte)")  # fmt: skip
    add("--peers", metavar="A,B", type=_some_of("peer", (*PEERS_OF, "none")),
        help="of checkpoint,save_on_cpu,compile,compile_budget")  # fmt: skip
    add("--device", metavar="NAME", choices=("cuda", "cpu"), help="cuda, or cpu: smaller networks")
    add("--steps", metavar="N", type=int, default=20, help="that are timed, of each (20)")
    add("--smallest", action="store_true", help="also the smallest ratio that fits")
    add("--batch-in", metavar="SIZE", type=_bytes, help="also the largest batch in 16GiB, say")
    add("--results", metavar="FILE", type=Path, default=Path("coop-bench.jsonl"),
        help="where it is kept as it comes (coop-bench.jsonl)")  # fmt: skip
    add("--resume", action="store_true", help="without what is there, of this commit")
    add("--time-limit", metavar="T", type=_seconds, help="stop in time, and say what is left: 9min")
    add("--dry-run", action="store_true", help="only say what it would be, and how long it takes")
    add("--json", metavar="FILE", type=Path, help="also write all of it there")
    add("--plot", metavar="FILE", type=Path, help="draw it as .svg, .html or .png")
    add("--show", metavar="FILE", type=Path, help="measure nothing: tables of what was kept there")
    add("--all", action="store_true", help="tables in full, not only in brief")
    add("--cell-limit", type=_seconds, default=150.0, help=hidden)
    add("--commit", help=hidden)
    add("--smoke", action="store_true", help=hidden)
    return parser


def _check(parser: Parser, options: Namespace) -> None:
    for name in options.networks:
        if name not in NETWORKS:
            begins = [known for known in NETWORKS if known.startswith(name)]
            close = begins or get_close_matches(name, NETWORKS, 1)
            meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(NETWORKS)}"
            parser.error(f"there is no network {name!r}; {meant}")
    if not 2 <= options.steps <= 10_000:
        parser.error(f"--steps {options.steps}: it takes 2 to 10000")
    if options.plot is not None:
        launch.check_picture(parser, "--plot", options.plot)
    for option in ("json", "plot", "results"):
        path = getattr(options, option)
        if path is not None and not (option == "results" and (options.dry_run or options.show)):
            launch.check_writable(parser, f"--{option}", path)


def _wanted(parser: Parser, options: Namespace) -> Wanted:
    device = options.device or _device()
    usual = [name for name, network in NETWORKS.items() if not network.variant_of]
    more = {"networks": options.networks or usual, "ratios": tuple(options.ratios)}
    policies = () if "none" in options.policies else options.policies
    more |= {"policies": policies, "warm_up": WARM_UP, "timed": options.steps}
    if options.smoke:
        more |= SMOKE
    networks = session.without_missing(more.pop("networks"), device, _tell)
    # To compile for a CPU takes minutes, and save_on_cpu makes no sense there.
    there = ("checkpoint", "save_on_cpu", "compile_budget") if device == "cuda" else ("checkpoint",)
    peers = there if options.peers is None else options.peers
    wanted = Wanted(
        networks=tuple(dict.fromkeys(networks)),
        device=device,
        peers=() if "none" in peers else peers,
        has_smallest=options.smallest,
        limit=options.batch_in,
        **more,
    )
    if not wanted.cases():
        parser.error("nothing is left to measure")
    return wanted


def _device() -> str:
    """Without PyTorch, which the processes that measure ask again."""
    named = os.environ.get("COOP_DEVICE", "").partition(":")[0]
    return named or ("cuda" if Path("/dev/nvidiactl").exists() else "cpu")


def _some_of(what: str, known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def read_names(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(text.split(",")))
        for name in names:
            if name not in known:
                raise ArgumentTypeError(
                    f"there is no {what} {name!r}; there are {', '.join(known)}"
                )
        return names

    return read_names


def _seconds(text: str) -> float:
    return _amount(text, SECONDS, "a time, such as 9min or 90s")


def _bytes(text: str) -> int:
    return int(_amount(text, BYTES, "a size, such as 16GiB"))


def _amount(text: str, units: dict[str, int], meant: str) -> float:
    found = re.fullmatch(rf"(\d+(?:\.\d+)?) ?({'|'.join(units)})", text)
    if found is None or float(found[1]) == 0:
        raise ArgumentTypeError(f"{text!r} is not {meant}")
    return float(found[1]) * units[found[2]]
