"""`coop report`, `coop run --report` and `coop.report`: one file, which loads nothing."""

import json
import re
import shlex

import pytest
from command_line import COOP, PYTHON, ROOT, run
from test_plan import TRAINS

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402

MIB = 1 << 20
HUGE = "coop-trace 1\nsource 0 4194304\nrelease 0\nend 2\n"
SPOS = ROOT / "tests/data/h200/spos.log.gz"
PRINTS = "\n".join((TRAINS, "import sys", "for step in range(int(sys.argv[1])):", "    train()"))
LOSSES = PRINTS + "\n    print(step, model[0].weight.sum().item().hex())\n"


def runs_of(page):
    """What is in a page, which is all that it needs."""
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert not re.search(r"""(src|href)=|https?:|url\(|@import""", text)
    assert "default-src 'none'" in text
    found = re.search(
        r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL
    )
    return json.loads(found[1])["runs"]


# --- of a trace ---


def test_a_trace_is_drawn(tmp_path, coop_sim):
    sim = {"COOP_SIM": str(coop_sim.program)}
    done = run([*COOP, "report", "--inplace", "--ratio", ".7", SPOS], tmp_path, **sim)
    assert (done.code, done.out) == (0, "")
    assert done.err == "mem.html: open it in a browser\n"
    (run_,) = runs_of(tmp_path / "mem.html")
    assert (run_["name"], run_["policy"], run_["status"]) == ("spos", "coop", "ok")
    words = ["--policy", "dtr", "--budget", "3GiB", "--inplace", "-q", "-o", "other.html"]
    done = run([*COOP, "report", SPOS, SPOS, *words], tmp_path, **sim)
    assert (done.code, done.out, done.err) == (0, "", "")
    runs = runs_of(tmp_path / "other.html")
    assert [it["policy"] for it in runs] == ["dtr", "dtr"]
    assert [it["budget_bytes"] for it in runs] == [3 << 30] * 2


def test_what_does_not_fit_is_drawn_and_it_says_what_would(tmp_path, coop_sim):
    sim = {"COOP_SIM": str(coop_sim.program)}
    done = run([*COOP, "report", "--inplace", "--ratio", ".1", SPOS], tmp_path, **sim)
    assert (done.code, done.out) == (0, "")  # as of coop-sim run: that is a result
    first, second = done.err.splitlines()
    assert first == "mem.html: open it in a browser"
    (run_,) = runs_of(tmp_path / "mem.html")
    assert run_["status"] == "out_of_memory"
    said = r"spos: does not fit into 425\.2 MiB; (.+) is the smallest that was found to work, (.+)"
    budget, ratio = re.fullmatch(said, second).groups()
    smallest, peak = run_["smallest_budget_bytes"], run_["peak_bytes"]
    assert smallest <= float(budget.removesuffix(" MiB")) * MIB < smallest + 0.11 * MIB
    assert smallest <= float(ratio.removeprefix("ratio ")) * peak < smallest + 0.0011 * peak
    (tmp_path / "huge.trace").write_text(HUGE)
    command = [*COOP, "report", "huge.trace", "--policy", "coop", "--budget"]
    done = run([*command, "1MiB"], tmp_path, **sim)
    assert done.code == 0, done.err
    assert "huge: does not fit into 1.0 MiB; 4.0 MiB is the smallest" in done.err
    assert "fit" not in run([*command, "4MiB"], tmp_path, **sim).err
    assert run([*command, "1MiB", "-q"], tmp_path, **sim).err == ""


BAD = {
    "": "the following arguments are required: TRACE",
    "none.coop": "none.coop: ",
    f"{SPOS}": "give --ratio or --budget",
    f"{SPOS} --ratio .5 --budget 1GiB": "either --budget or --ratio",
    f"{SPOS} --ratio 50": "--ratio 50: a ratio is budget / peak",
    f"{SPOS} --ratio .5 --policy oracle": "no policy 'oracle'",
    f"{SPOS} --ratio .5 -o no/folder/mem.html": "no/folder/mem.html cannot be written",
    f"{SPOS} --ratio .5 -o .": "-o . is a directory",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line(tmp_path, coop_sim, words):
    done = run([*COOP, "report", *words.split()], tmp_path, COOP_SIM=str(coop_sim.program))
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.startswith("coop report: error: ")
    assert BAD[words] in done.err
    assert done.err.count("\n") == 1
    assert not done.files


def test_an_earlier_report_is_not_lost_where_there_is_no_room(tmp_path, coop_sim):
    (tmp_path / "mem.html").write_text("an earlier one")
    command = [*COOP, "report", "--inplace", "--ratio", ".7", str(SPOS)]
    limited = ["bash", "-c", f"ulimit -f 20 && {shlex.join(command)}"]
    done = run(limited, tmp_path, COOP_SIM=str(coop_sim.program))
    assert (done.code, done.out) == (2, "")
    assert done.err == "coop report: error: mem.html was not written: File too large\n"
    assert done.files == {"mem.html": b"an earlier one"}


def test_without_a_simulator_it_says_what_to_install(tmp_path):
    done = run([*COOP, "report", SPOS], tmp_path, COOP_SIM=str(tmp_path / "none"))
    assert done.code == 2
    assert "coop was installed without its simulator" in done.err


# --- of a program ---


def report_of(folder, coop_sim, *words, budget="13MiB"):
    (folder / "script.py").write_text(LOSSES)
    command = [*COOP, "run", "--budget", budget, "--report", "mem.html", "script.py", *words]
    return run(command, folder, COOP_SIM=str(coop_sim.program))


def test_the_first_steps_of_a_program_are_drawn_and_it_goes_on(tmp_path, coop_sim):
    done = report_of(tmp_path, coop_sim, "8")
    plain = run([*PYTHON, "script.py", "8"], tmp_path)
    assert (done.code, done.out) == (0, plain.out), done.err
    assert f"coop: report     {tmp_path}/mem.html" in done.lines
    assert sorted(done.files) == ["mem.html", "script.py"]
    (run_,) = runs_of(tmp_path / "mem.html")
    assert (run_["name"], run_["budget_bytes"], run_["status"]) == ("script", 13 << 20, "ok")
    assert len(run_["all_steps"]) == 4  # without the first, which is preparation
    assert run_["recomputed_calls"] > 0
    assert "parameter 0.weight" in run_["names"]
    assert {"0", "14"} <= {it["module"] for it in run_["places"]}


def test_of_several_processes_the_line_names_the_rank(tmp_path, coop_sim):
    (tmp_path / "script.py").write_text(PRINTS)
    ranks = {"RANK": "1", "WORLD_SIZE": "2", "COOP_SIM": str(coop_sim.program)}
    command = [*COOP, "run", "--budget", "13MiB", "--report", "mem.html", "script.py", "2"]
    done = run(command, tmp_path, **ranks)
    assert f"coop[1]: report     {tmp_path}/rank1-mem.html" in done.lines, done.err
    assert all(line.startswith("coop[1]: ") for line in done.lines)


def test_a_program_that_runs_out_of_memory_is_drawn_up_to_there(tmp_path, coop_sim):
    done = report_of(tmp_path, coop_sim, "3", budget="4MiB")
    assert done.code == 1
    assert "OutOfMemoryError" in done.err
    (run_,) = runs_of(tmp_path / "mem.html")
    assert len(run_["blocks"]["bytes"]) > 0
    assert not run_["has_steps"]
    assert run_["advice"][0].startswith("The program ran out of memory: aten::")


def test_the_step_that_runs_out_of_memory_is_drawn(tmp_path, coop_sim):
    """After whole ones; and an error that was caught is none."""
    ends = "try:\n    torch.ones(1 << 40)\nexcept torch.OutOfMemoryError:\n    pass\n"
    (tmp_path / "script.py").write_text(f"{LOSSES}{ends}optimizer.zero_grad()\nx = model(huge)")
    command = [*COOP, "run", "--budget", "13MiB", "--report", "mem.html", "script.py", "3"]
    done = run(command, tmp_path, COOP_SIM=str(coop_sim.program))
    assert "NameError" in done.err
    (run_,) = runs_of(tmp_path / "mem.html")
    assert len(run_["all_steps"]) == 2
    assert not any("ran out of memory" in it for it in run_["advice"])
    (tmp_path / "script.py").write_text(f"{LOSSES}x = model(torch.randn(1 << 14, 256))")
    done = run(command, tmp_path, COOP_SIM=str(coop_sim.program))
    assert "OutOfMemoryError" in done.err
    (run_,) = runs_of(tmp_path / "mem.html")
    assert run_["advice"][0].startswith("The program ran out of memory: aten::")
    assert "16 MiB" in run_["advice"][0]
    assert run_["has_steps"]


def test_wrong_reports_are_refused_before_anything_runs(tmp_path, coop_sim):
    (tmp_path / "script.py").write_text("print('it runs')")
    for words, says in {
        "--report .": "--report . is a directory",
        "--report mem.html --trace t.coop": "either --report or --trace",
    }.items():
        command = [*COOP, "run", *words.split(), "script.py"]
        done = run(command, tmp_path, COOP_SIM=str(coop_sim.program))
        assert (done.code, done.out) == (2, "")
        assert says in done.err


def test_a_scope_is_drawn(tmp_path, coop_sim):
    scope = (
        "import coop\nwith coop.budget('13MiB'), coop.report('mem.html') as report:\n"
        "    for _ in range(3):\n        report.step()\n        train()\n"
    )
    (tmp_path / "script.py").write_text(TRAINS + scope)
    done = run([*PYTHON, "script.py"], tmp_path, COOP_SIM=str(coop_sim.program))
    assert (done.code, done.err) == (0, "")
    (run_,) = runs_of(tmp_path / "mem.html")
    assert (run_["name"], len(run_["all_steps"])) == ("mem", 3)
    assert sorted(done.files) == ["mem.html", "script.py"]
    (tmp_path / "script.py").write_text(TRAINS + scope.replace("train()", "torch.ones(1 << 40)"))
    done = run([*PYTHON, "script.py"], tmp_path, COOP_SIM=str(coop_sim.program))
    assert "OutOfMemoryError" in done.err
    (run_,) = runs_of(tmp_path / "mem.html")
    assert run_["advice"][0].startswith("The program ran out of memory: aten::")


def test_where_no_file_can_be_nothing_begins(tmp_path):
    with pytest.raises(FileNotFoundError, match="no recording can be written there"):
        coop.report(tmp_path / "no/mem.html").__enter__()
