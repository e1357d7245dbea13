"""Every subcommand of coop-sim does what docs/simulator.md says; sweep has a file of its own."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import coop
import pytest
from coop_sim_checks import BILSTM, RESNET, check_fields


def test_run_reports_every_figure(coop_sim):
    result = coop_sim.json("run", RESNET, "--inplace", "--policy", "coop", "--ratio", ".5")
    check_fields(result)
    assert result["trace"] == RESNET
    assert (result["policy"], result["status"], result["steps"]) == ("coop", "ok", 1)
    assert result["budget_bytes"] == result["peak_bytes"] // 2
    assert result["most_held_bytes"] <= result["budget_bytes"]
    assert result["overhead"] == pytest.approx(result["total_ns"] / result["base_ns"] - 1)
    assert result["evictions"] > 0
    assert result["recomputed_calls"] > 0
    assert result["searches"] > 0
    assert 0 <= result["fragmentation"] < 1


def test_run_without_a_budget_that_binds_costs_nothing(coop_sim):
    result = coop_sim.json("run", RESNET, "--inplace", "--policy", "coop", "--ratio", "2")
    assert (result["overhead"], result["evictions"], result["searches"]) == (0, 0, 0)


def test_run_takes_a_budget_in_bytes(coop_sim, small_trace):
    result = coop_sim.json("run", small_trace, "--policy", "dtr", "--budget", "8GiB")
    assert result["budget_bytes"] == 8 << 30


def test_run_again_and_again(coop_sim):
    result = coop_sim.json(
        "run", RESNET, "--inplace", "--policy", "coop", "--ratio", ".5", "--steps", 3
    )
    assert result["steps"] == 3


def test_run_out_of_memory_finds_a_budget_that_works(coop_sim):
    run = ("run", RESNET, "--inplace", "--policy", "coop")
    result = coop_sim.json(*run, "--ratio", ".1")
    check_fields(result)
    assert result["status"] == "out_of_memory"
    assert set(result["failure"]) == {"op", "event", "step", "requested_bytes", "why"}
    assert result["is_complete"] is True
    smallest = result["smallest_budget_bytes"]
    assert result["budget_bytes"] < smallest < result["peak_bytes"]
    assert coop_sim.json(*run, "--budget", smallest)["status"] == "ok"
    less = smallest - result["peak_bytes"] // 1000 - 1
    assert coop_sim.json(*run, "--budget", less)["status"] == "out_of_memory"
    assert "smallest that was found to work" in coop_sim.text(*run, "--ratio", ".1")


def test_format_is_guessed_or_given(coop_sim, small_trace):
    at = ("--policy", "lru", "--ratio", ".9")
    assert coop_sim.json("run", RESNET, *at)["steps"] == 1
    assert coop_sim.json("run", RESNET, "--format", "dtr", *at)["steps"] == 1
    assert coop_sim.json("run", small_trace, "--format", "coop", *at)["steps"] == 2
    assert "not a trace" in coop_sim.refuses("run", RESNET, "--format", "coop", *at)


def test_in_place_there_are_no_copies(coop_sim):
    copies, in_place = (coop_sim.json("info", RESNET, *more) for more in ([], ["--inplace"]))
    assert in_place["storages"] < copies["storages"]
    assert in_place["base_ns"] == copies["base_ns"]


def test_no_fragmentation_is_a_world_without_holes(coop_sim):
    at = ("run", RESNET, "--inplace", "--policy", "dtr", "--ratio", ".5")
    with_addresses, without = coop_sim.json(*at), coop_sim.json(*at, "--no-fragmentation")
    assert without["total_ns"] <= with_addresses["total_ns"]
    assert without["fragmentation"] < with_addresses["fragmentation"]


def test_explain(coop_sim):
    at = ("explain", RESNET, "--inplace", "--policy", "coop", "--ratio", ".5")
    about = coop_sim.json(*at)
    check_fields(about)
    assert sum(each["times"] for each in about["evicted"]) == about["evictions"]
    assert sum(each["bytes"] for each in about["evicted"]) == about["evicted_bytes"]
    assert sum(each["times"] for each in about["recomputed"]) == about["recomputed_calls"]
    recomputed_ns = about["total_ns"] - about["base_ns"] - about["moving_ns"]
    assert sum(each["ns"] for each in about["recomputed"]) == pytest.approx(recomputed_ns)
    for lines, figure in (("evicted", "bytes"), ("recomputed", "ns")):
        figures = [each[figure] for each in about[lines]]
        assert figures == sorted(figures, reverse=True)
    tightest = about["tightest"]
    assert tightest["budget_bytes"] < about["smallest_budget_bytes"]
    held = sum(each["bytes"] for each in tightest["held"])
    assert held + tightest["free_bytes"] == tightest["budget_bytes"]
    assert all(each["bytes"] > 0 for each in tightest["largest"])
    text = coop_sim.text(*at)
    assert "smallest budget that was found to work" in text
    assert "held then" in text


def test_explain_says_what_it_tries_and_leaves_what_is_known(coop_sim):
    at = ("explain", BILSTM, "--inplace", "--policy", "coop", "--ratio", ".5", "--steps", "3")
    reader, writer = pty.openpty()
    with subprocess.Popen(
        [coop_sim.program, *at, "--json"],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
    ) as process:
        os.close(writer)
        said = ""
        while not re.search(r"[1-9] of 11: bilstm in .* is enough", said):
            said += os.read(reader, 1000).decode()
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    os.close(reader)
    assert process.returncode == 130
    about = json.loads(printed)
    check_fields(about)
    assert about["is_complete"] is False
    assert 0 < about["smallest_budget_bytes"] <= about["peak_bytes"]


def test_explain_what_does_not_fit(coop_sim):
    at = ("explain", RESNET, "--inplace", "--policy", "dtr", "--ratio", ".1")
    about = coop_sim.json(*at)
    assert about["status"] == "out_of_memory"
    assert about["tightest"]["op"] == about["failure"]["op"]
    assert "out of memory in " in coop_sim.text(*at)


def test_info(coop_sim):
    about = coop_sim.json("info", RESNET, "--inplace")
    assert (about["calls"], about["steps"]) == (408, 1)
    assert sum(about["at_peak_bytes"].values()) == about["peak_bytes"]
    assert sum(op["calls"] for op in about["ops"]) == about["calls"]
    assert sum(op["ns"] for op in about["ops"]) == pytest.approx(about["base_ns"])
    sizes = [each["bytes"] for each in about["largest"]]
    assert sizes == sorted(sizes, reverse=True)
    assert "aten.convolution.default" in coop_sim.text("info", RESNET, "--inplace")


def test_make_writes_the_same_trace_every_time(coop_sim, tmp_path):
    at = ("make", "transformer", "--seed", 4, "--steps", 1, "--layers", 2)
    printed = coop_sim.text(*at)
    assert printed.startswith("coop-trace 1\n")
    plain, zipped = tmp_path / "a.trace", tmp_path / "b.trace.gz"
    coop_sim.text(*at, "-o", plain)
    coop_sim.text(*at, "-o", zipped)
    assert plain.read_text() == printed
    assert zipped.stat().st_size < plain.stat().st_size
    abouts = [coop_sim.json("info", path) for path in (plain, zipped)]
    assert [about.pop("trace") for about in abouts] == [str(plain), str(zipped)]
    assert abouts[0] == abouts[1]
    assert coop_sim.text("make", "transformer", "--seed", 5, "--steps", 1) != printed


def test_policies_are_those_that_run(coop_sim, small_trace):
    known = coop_sim.json("policies")
    ablations = {"coop-paper-no-window", "coop-paper-no-partition"}
    assert {"coop", "coop-paper", "dtr", "dte"} | ablations <= {policy["name"] for policy in known}
    assert all(policy["summary"] in coop_sim.text("policies") for policy in known)
    for policy in known:
        at = ("run", small_trace, "--policy", policy["name"], "--ratio", "1.2")
        assert coop_sim.json(*at)["status"] == "ok"
        done = coop_sim.run(*at, "--no-fragmentation")
        assert done.returncode == (2 if policy["needs_addresses"] else 0)


COMMANDS = ("run", "sweep", "explain", "report", "info", "make", "policies")


def test_help_has_an_example_for_each_command(coop_sim):
    for command in COMMANDS:
        text = coop_sim.text(command, "--help")
        assert f"coop-sim {command}" in text.split("Example:")[1]
    assert all(re.search(rf"^  {command} ", coop_sim.text("--help"), re.M) for command in COMMANDS)


def test_version(coop_sim):
    assert coop_sim.text("--version") == f"coop-sim {coop.__version__}\n"
