"""coop-sim sweep: every cell, the same however it is run, and what is left when it is stopped."""

import os
import pty
import re
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path

from coop_sim_checks import BILSTM, RESNET, SPOS, check_fields, check_picture, texts

SWEEP = ("sweep", RESNET, BILSTM, "--inplace", "--policies", "coop,dtr", "--ratios", ".6,.5,.05")


def without_search_times(value):
    if isinstance(value, dict):
        return {k: without_search_times(v) for k, v in value.items() if k != "search_ns"}
    return [without_search_times(each) for each in value] if isinstance(value, list) else value


def test_sweep_has_every_cell_in_order(coop_sim):
    swept = coop_sim.json(*SWEEP)
    assert swept["is_complete"] is True
    for result in swept["results"]:
        check_fields({field: result[field] for field in result if field != "ratio"})
    assert [(r["trace"], r["policy"], r["ratio"]) for r in swept["results"]] == [
        (trace, policy, ratio)
        for trace in (RESNET, BILSTM)
        for policy in ("coop", "dtr")
        for ratio in (0.6, 0.5, 0.05)
    ]
    assert all((r["status"] == "ok") == (r["ratio"] > 0.1) for r in swept["results"])


def test_sweep_agrees_with_run_however_many_jobs(coop_sim):
    swept = [without_search_times(coop_sim.json(*SWEEP, "--jobs", jobs)) for jobs in (1, 4)]
    assert swept[0] == swept[1]
    run = coop_sim.json("run", RESNET, "--inplace", "--policy", "dtr", "--ratio", ".5")
    (cell,) = (
        result
        for result in swept[0]["results"]
        if (result["trace"], result["policy"], result["ratio"]) == (RESNET, "dtr", 0.5)
    )
    assert cell == {"ratio": 0.5, **without_search_times(run)}


def test_sweep_prints_tables(coop_sim):
    text = coop_sim.text(*SWEEP, "--reference", "tests/data/h200/lower_bound.csv")
    for heading in ("resnet50: peak", "bilstm: peak", "Overhead", "Fragmentation", "Search time"):
        assert heading in text
    assert re.search(r"^  \(lower bound\) +4\.7% +6\.9%$", text, re.MULTILINE)
    assert re.search(r"^  dtr +\d+\.\d% +\d+\.\d% +-$", text, re.MULTILINE)
    assert text.endswith("-: does not fit\n")


def test_sweep_sums_up_what_every_policy_can_run(coop_sim):
    traces = (RESNET, SPOS)
    at = ("--inplace", "--policies", "coop,dtr", "--ratios", ".5,.2,.05")
    sweep = ("sweep", *traces, *at)
    text = coop_sim.text(*sweep, "--summary")
    ok = {
        (r["trace"], r["policy"], r["ratio"]): r
        for r in coop_sim.json(*sweep)["results"]
        if r["status"] == "ok"
    }
    rows = re.findall(r"^  (coop|dtr) +(\S+) +(\S+) +(\S+)$", text, re.MULTILINE)
    assert [policy for policy, *_ in rows] == 5 * ["coop", "dtr"]
    for i, ratio in enumerate((0.5, 0.2, 0.05)):
        common = [t for t in traces if all((t, p, ratio) in ok for p in ("coop", "dtr"))]
        for policy, *cells in rows[:2]:
            assert int(cells[i]) == sum((t, policy, ratio) in ok for t in traces)
        for policy, *cells in rows[4:6]:
            overheads = [
                (ok[t, policy, ratio]["overhead"], ok[t, other, ratio]["overhead"])
                for t in common
                for other in ("coop", "dtr")
                if other != policy
            ]
            assert int(cells[i]) == sum(own < other + 0.0005 for own, other in overheads)
        for figure, lines in (("overhead", rows[2:4]), ("fragmentation", rows[6:8])):
            for policy, *cells in lines:
                figures = [100 * ok[trace, policy, ratio][figure] for trace in common]
                mean = f"{sum(figures) / len(figures):.1f}%" if figures else "-"
                assert cells[i] == mean
    assert coop_sim.refuses(*sweep, "--summary", "--json").startswith("--summary excludes --json")


def test_sweep_knows_references_by_the_beginning_of_a_name(coop_sim, small_trace, tmp_path):
    reference = tmp_path / "reference.csv"
    reference.write_text(
        "# ours\n\nreference,trace,ratio,time\n"
        "ours,net-5,.9,1.25\nours,net-5,.8,none\nours,net,.9,9\n"
    )
    trace = tmp_path / "net-5-2020-10-1.trace"
    trace.write_text(small_trace.read_text())
    at = ("--policies", "lru", "--ratios", ".9,.8", "--reference", reference)
    found = coop_sim.json("sweep", trace, *at)["references"]
    assert [(each["ratio"], each["overhead"]) for each in found] == [
        (0.9, 0.25),
        (0.8, None),
        (0.9, 8),
    ]
    trace = trace.rename(tmp_path / "net-51.trace")
    found = coop_sim.json("sweep", trace, *at)["references"]
    assert [each["overhead"] for each in found] == [8]


def test_sweep_plots(coop_sim, tmp_path):
    paths = [tmp_path / "sweep.svg", tmp_path / "sweep.html"]
    reference = "tests/data/h200/lower_bound.csv"
    png = tmp_path / "sweep.png"
    plots = [argument for path in (*paths, png) for argument in ("--plot", path)]
    text = coop_sim.text(*SWEEP, "--reference", reference, *plots)
    for path in paths:
        said = texts(check_picture(path))
        for label in ("resnet50", "bilstm", "coop", "dtr", "lower bound", "overhead (%)"):
            assert label in said
    assert "Search time" in text
    assert png.read_bytes().startswith(b"\x89PNG")
    HTMLParser().feed(paths[1].read_text())
    assert "Fragmentation" in paths[1].read_text(), "a page has the figures too"


def test_sweep_says_how_far_it_is_and_stops_when_asked(coop_sim):
    # Enough to last a minute. Progress is for terminals: standard error is one.
    ratios = ",".join(f"{0.3 + i / 10000:.4f}" for i in range(5000))
    sweep = ("sweep", BILSTM, "--inplace", "--policies", "coop", "--ratios", ratios, "--jobs", "2")
    reader, writer = pty.openpty()
    with subprocess.Popen(
        [coop_sim.program, *sweep],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
    ) as process:
        os.close(writer)
        said = os.read(reader, 1000).decode()
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    os.close(reader)
    assert re.search(r"\d+ of 5000: bilstm, coop at 0\.\d+", said)
    assert process.returncode == 130
    (done,) = re.findall(r"interrupted after (\d+) of 5000", printed)
    assert 0 < int(done) < 5000
    assert "?" in printed and "%" in printed
