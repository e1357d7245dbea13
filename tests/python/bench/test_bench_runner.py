"""Processes that hang, die or end early cost a cell, not the benchmark; time limits are kept."""

import sys
import time
from dataclasses import replace

import pytest
from coop.bench.grid import RATIO, Case
from coop.bench.process import Child
from coop.bench.progress import Estimates, Progress
from coop.bench.results import Results
from coop.bench.runner import RefusedError, Runner
from processes import is_running

# Does what the names of its variants say.
CHILD = """
import json, os, subprocess, sys, time
wanted = json.loads(sys.stdin.readline())
if wanted["network"] == "spos":
    print(json.dumps({"refused": "there is no GPU here"}), flush=True)
    sys.exit()
print(json.dumps({"facts": {"torch": "2.11.0", "process": os.getpid()}}), flush=True)
for variant in wanted["variants"]:
    if variant == "hangs":
        other = subprocess.Popen(["sleep", "100"])
        facts = {"process": os.getpid(), "other": other.pid}
        print(json.dumps({"facts": facts}), flush=True)
        time.sleep(100)
    if variant == "slow":
        for _ in range(6):
            print(json.dumps({"beat": True}), flush=True)
            time.sleep(0.25)
    if variant == "dies":
        os.kill(os.getpid(), 9)
    if variant == "fails":
        print("first", file=sys.stderr)
        sys.exit("it went wrong")
    if variant == "leaves" and wanted["variants"][0] != "leaves":
        sys.exit()
    if variant == "mute":
        sys.exit()
    cell = {"status": "ok", "overhead": 0.1, "step_s": 0.1, "plain_s": 0.09}
    print(json.dumps({"variant": variant, "cell": cell}), flush=True)
"""


# How long each is expected to take, in seconds.
QUICK = {
    ("bilstm", RATIO, 0.5 + i / 10, variant): 0.2
    for i in range(2)
    for variant in ("coop", "dtr", "hangs", "dies", "fails", "leaves", "mute", "slow")
}


@pytest.fixture
def run(wanted, tmp_path):
    """Runs cases of these variants; what was left of each, and what was kept and said."""

    def run_cases(*cases, cell_limit=20.0, time_limit=None):
        cases = [Case("bilstm", RATIO, 0.5 + i / 10, variants) for i, variants in enumerate(cases)]
        said = []
        results = Results.kept_in(tmp_path / "kept.jsonl", "abc")
        runner = Runner(
            wanted,
            results,
            Progress(Estimates(wanted, QUICK, {}), cases, said.append),
            cell_limit,
            None if time_limit is None else time.monotonic() + time_limit,
            lambda told: Child(told, [sys.executable, "-S", "-c", CHILD]),
        )
        left = runner.run(cases)
        return [it.variants for it in left], results.cells, said

    return run_cases


def statuses(cells):
    return {cell["variant"]: cell["status"] for cell in cells}


def test_all_is_kept_as_it_comes_and_said_with_the_time_left(run, tmp_path):
    left, cells, said = run(("coop", "dtr"), ("coop",))
    assert left == []
    assert [it["variant"] for it in cells] == ["coop", "dtr", "coop"]
    assert cells[0]["commit"] == "abc" and cells[0]["torch"] == "2.11.0"
    assert cells[0]["process"] == cells[1]["process"] != cells[2]["process"]
    assert (tmp_path / "kept.jsonl").read_text().count("\n") == 3
    assert said[1].startswith("[2/3, about ") and "bilstm 50%, dtr: +10.0%" in said[1]


def test_one_that_hangs_is_ended_with_all_that_it_started(run):
    _, cells, _ = run(("coop", "hangs", "dtr"), cell_limit=1.0)
    assert statuses(cells) == {"coop": "ok", "hangs": "timed out", "dtr": "ok"}
    (hanging,) = [it for it in cells if it["variant"] == "hangs"]
    assert not is_running(hanging["process"]) and not is_running(hanging["other"])


def test_one_that_goes_on_is_let_go_on(run):
    _, cells, _ = run(("slow",), cell_limit=1.0)
    assert statuses(cells) == {"slow": "ok"}
    assert cells[0]["torch"] == "2.11.0" and cells[0]["took_s"] > 1.0


def test_one_that_dies_says_how_and_the_rest_goes_to_another(run):
    _, cells, _ = run(("dies", "coop", "fails", "dtr"))
    crashed = {"dies": "crashed", "fails": "crashed"}
    assert statuses(cells) == {"coop": "ok", "dtr": "ok", **crashed}
    why = {it["variant"]: it.get("why") for it in cells}
    assert why["dies"] == "signal 9, SIGKILL"
    assert why["fails"] == "exit code 1: it went wrong"


def test_one_that_leaves_early_is_followed_by_another(run):
    _, cells, _ = run(("coop", "leaves", "dtr"))
    assert statuses(cells) == {"coop": "ok", "leaves": "ok", "dtr": "ok"}
    assert cells[0]["process"] != cells[1]["process"]


def test_one_that_says_nothing_is_not_asked_for_ever(run):
    _, cells, _ = run(("mute", "coop"))
    assert statuses(cells) == {"mute": "crashed", "coop": "ok"}


def test_what_no_process_can_do_ends_it(wanted, tmp_path):
    case = Case("spos", RATIO, 0.5, ("coop",))
    results = Results.kept_in(tmp_path / "kept.jsonl", "abc")
    progress = Progress(Estimates.of(wanted, []), [case], print)
    runner = Runner(wanted, results, progress, 20.0)
    runner.start = lambda told: Child(told, [sys.executable, "-S", "-c", CHILD])
    with pytest.raises(RefusedError, match="no GPU"):
        runner.run([case])
    assert results.cells == []


def test_nothing_begins_that_has_no_time(run):
    left, cells, _ = run(("coop", "dtr"), ("coop",), time_limit=0.1)
    assert (left, cells) == ([("coop", "dtr"), ("coop",)], [])


def test_what_the_time_ends_is_left_and_not_held_against_it(run):
    left, cells, _ = run(("coop", "hangs"), ("dtr",), time_limit=2.0, cell_limit=60.0)
    assert left == [("hangs",), ("dtr",)]
    assert statuses(cells) == {"coop": "ok"}


def run_on_a_gpu(wanted, tmp_path, cases, **limits):
    """The processes of the cases, and how many of them there were whenever a cell was done."""
    started, counts = [], []

    def start(told):
        started.append(Child(told, [sys.executable, "-S", "-c", CHILD]))
        return started[-1]

    wanted = replace(wanted, device="cuda")
    results = Results.kept_in(tmp_path / "kept.jsonl", "abc")
    progress = Progress(
        Estimates(wanted, QUICK, {}), cases, lambda line: counts.append(len(started))
    )
    Runner(wanted, results, progress, 20.0, start=start, **limits).run(cases)
    return [it._process for it in started], counts, results.cells


def test_on_a_gpu_the_next_one_waits_already(wanted, tmp_path):
    ratios = (("coop", "dtr"), ("dies", "coop"), ("coop",))
    cases = [Case("bilstm", RATIO, 0.5 + i / 10, it) for i, it in enumerate(ratios)]
    processes, counts, cells = run_on_a_gpu(wanted, tmp_path, cases)
    # One is lost in the second case, and the rest of that goes to one that nobody has waited for.
    assert counts == [2, 2, 3, 4, 4]
    assert [it["status"] for it in cells] == ["ok", "ok", "crashed", "ok", "ok"]
    assert len({it["process"] for it in cells if "process" in it}) == 4
    assert not any(is_running(it.pid) for it in processes)


def test_one_that_waits_for_nothing_is_ended(wanted, tmp_path):
    cases = [Case("bilstm", RATIO, 0.5 + i / 10, ("hangs",)) for i in range(2)]
    deadline = time.monotonic() + 2.0
    processes, counts, cells = run_on_a_gpu(wanted, tmp_path, cases, deadline=deadline)
    assert (len(processes), counts, cells) == (2, [], [])
    assert not any(is_running(it.pid) for it in processes)
