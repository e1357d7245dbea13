"""`coop plan`: a few steps of a program, and what every budget would cost."""

import json
import os
import re
import shlex
import signal
import subprocess

import pytest
from command_line import COOP, environment, run
from coop.cli.budgets import Costs, Row
from coop_sim_checks import check_picture

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

TRAINS = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[it for _ in range(8) for it in (nn.Linear(256, 256), nn.Tanh())])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    optimizer.zero_grad()
    model(torch.randn(1024, 256)).square().mean().backward()
    optimizer.step()
"""


def plan(folder, script, *options, coop_sim, arguments=()):
    (folder / "script.py").write_text(TRAINS + script)
    command = [*COOP, "plan", *options, "script.py", *arguments]
    return run(command, folder, COOP_SIM=str(coop_sim.program))


# --- a plan ---


@pytest.fixture(scope="module")
def planned(tmp_path_factory, coop_sim):
    """One for all that can be seen of it. The program would not end by itself, nor let go."""
    folder = tmp_path_factory.mktemp("planned")
    script = """
import atexit, itertools
atexit.register(print, "at the end")
try:
    for step in itertools.count():
        try:
            train()
            print("step", step)
        except Exception:
            print("an error")
except BaseException:
    print("caught")
try:
    train()
finally:
    print("saved")
"""
    options = ["--json", "--trace", "kept.coop.gz", "--picture", "plan.svg"]
    done = plan(folder, script, *options, coop_sim=coop_sim)
    assert done.code == 0, done.err
    return folder, done, json.loads(done.out)


def test_the_program_ends_after_its_steps_as_by_exit(planned):
    _, done, found = planned
    ours = [f"coop plan: step {i} of 5, " for i in range(1, 6)]
    printed = re.sub(r"[\d.]+ (us|ms|s)$", "", done.err, flags=re.MULTILINE).splitlines()
    its = [line for line in printed if not line.startswith("coop")]
    assert its == [*(f"step {i}" for i in range(7)), "caught", "saved", "at the end"]
    assert [line for line in printed if line.startswith("coop")] == [
        *ours,
        "coop plan: 2 more, for what coop itself takes",
        "coop plan: trying budgets",
    ]
    assert (found["steps"], found["is_steady"]) == (5, True)


def test_costs_are_the_simulators(planned, coop_sim):
    folder, _, found = planned
    trace = folder / "kept.coop.gz"
    info = coop_sim.json("info", trace)
    assert (info["steps"], info["peak_bytes"]) == (4, found["peak_bytes"])
    budgets = [row["budget_bytes"] for row in found["rows"]]
    assert budgets == sorted(budgets, reverse=True)
    assert budgets[0] == found["peak_bytes"]
    for row in found["rows"][::4] + found["rows"][-1:]:
        again = coop_sim.json("run", trace, "--policy", "coop", "--budget", row["budget_bytes"])
        assert again["overhead"] == row["recomputing"]
        assert again["recomputed_calls"] == row["recomputed_calls"]
        assert row["ratio"] == pytest.approx(row["budget_bytes"] / found["peak_bytes"], rel=1e-6)


def test_what_coop_itself_takes_is_counted_where_a_budget_binds(planned):
    _, _, found = planned
    own, step_ns = found["own"], found["step_ns"]
    # Eight layers, forward and backward, at least; and a step of SGD is some more.
    assert own["operators"] >= 8 * 2 * 2
    assert 0 < own["own_ns"] < 1e9
    assert own["other_ns"] > 0
    whole_ns = step_ns + own["other_ns"]
    assert found["rows"][0]["overhead"] == 0
    binding = [row for row in found["rows"] if row["recomputed_calls"]]
    assert binding
    for row in binding:
        own_ns = own["own_ns"] * (1 + row["recomputed_calls"] / own["operators"])
        expected = (row["recomputing"] * step_ns + own_ns) / whole_ns
        assert row["overhead"] == pytest.approx(expected)


def test_the_smallest_fits_and_the_knee_is_advised(planned):
    _, _, found = planned
    fitting = [row for row in found["rows"] if row["overhead"] is not None]
    assert found["smallest"] in fitting
    knee = found["knee"] or found["smallest"]
    head, budget, *rest = found["command"][:3], found["command"][3], found["command"][4:]
    assert (head, rest) == (["coop", "run", "--budget"], [["script.py"]])
    mib = float(budget.removesuffix("MiB"))
    assert knee["budget_bytes"] <= mib * (1 << 20) < knee["budget_bytes"] + (1 << 20) / 5


def test_it_is_drawn(planned):
    folder, _, _ = planned
    check_picture(folder / "plan.svg")
    assert sorted(it.name for it in folder.iterdir()) == ["kept.coop.gz", "plan.svg", "script.py"]


def test_what_does_not_fit_is_recorded_in_less_and_the_advice_works(tmp_path, coop_sim):
    script = "import sys\nfor _ in range(int(sys.argv[1])):\n    train()\nprint('done')\n"
    options = ["--budget", "13MiB", "--ratios", ".9,.7"]
    done = plan(tmp_path, script, *options, coop_sim=coop_sim, arguments=("8",))
    assert done.code == 0, done.err
    size = r"[\d.]+ MiB"
    rows = re.findall(rf"^({size}) +([\d.]+)%  +(\S+%)$", done.out, re.MULTILINE)
    assert [row[1] for row in rows[:2]] == ["90.0", "70.0"]
    first = r"5 steps were recorded: peak 1[45]\.\d MiB, the last .* of operators\n"
    assert re.match(first, done.out)
    assert re.search(rf"\nsmallest  {size}, [\d.]+% of the peak, [\d.]+% more time\n", done.out)
    (advised,) = re.findall(r"^To run it so: coop (run .*)$", done.out, re.MULTILINE)
    words = shlex.split(advised)
    assert words[-2:] == ["script.py", "8"]
    assert float(words[2].removesuffix("MiB")) < 13
    trained = run([*COOP, *words], tmp_path)
    assert (trained.code, trained.out) == (0, "done\n"), trained.err
    assert trained.evicted > 0


def test_what_there_is_is_advised_where_the_knee_is_more(tmp_path, coop_sim):
    """A hair below 60% of the peak, and nothing else that fits between that and the smallest."""
    options = ["--budget", "9MiB", "--json"]
    done = plan(tmp_path, "for _ in range(6): train()\n", *options, coop_sim=coop_sim)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    budgets = [row["budget_bytes"] for row in found["rows"] if row["overhead"] is not None]
    assert 9 << 20 in budgets
    assert found["knee"] is None
    assert found["command"] == ["coop", "run", "--budget", "9.0MiB", "script.py"]


# --- programs that end otherwise ---

FAILS = """
for _ in range(3):
    train()
model(torch.randn(8, 256))
raise RuntimeError("it is over")
"""


def test_a_program_that_ends_early(tmp_path, coop_sim):
    done = plan(tmp_path, FAILS, "--trace", "kept.coop", coop_sim=coop_sim)
    assert done.code == 0, done.err
    assert "RuntimeError: it is over\n" in done.err
    says = "coop plan: the program ended with exit code 1; the plan is of what came before\n"
    assert says in done.err
    assert done.out.startswith("3 steps were recorded: ")
    assert "coop itself" not in done.out + done.err  # there was no step to see it in
    assert "\nAfter fewer than 5 steps, a later one may cost less than this.\n" in done.out
    # What came after the last whole one counts for nothing.
    trace = tmp_path / "kept.coop"
    assert coop_sim.json("info", trace)["steps"] == 3
    whole = coop_sim.json("run", trace, "--policy", "coop", "--ratio", 1, "--steps", 2)
    step = re.search(r"the last ([\d.]+) ms of operators", done.out)
    assert float(step[1]) == pytest.approx(whole["base_ns"] / 1e6, abs=0.06)


# Without PyTorch, because it is faster so: there is no step.
TOO_EARLY = {
    "print('done')": (1, "the program ended before 2 steps of it were written down"),
    "raise SystemExit(7)": (7, "the program ended with exit code 7 before 2 steps of it"),
    "import os; os.kill(os.getpid(), 9)": (137, "the program ended by signal 9 before"),
    "import argparse; argparse.ArgumentParser().parse_args(['x'])": (2, "unrecognized arguments"),
}


@pytest.mark.parametrize("script", TOO_EARLY)
def test_a_program_that_ends_too_early(tmp_path, coop_sim, script):
    code, says = TOO_EARLY[script]
    (tmp_path / "script.py").write_text(script)
    done = run([*COOP, "plan", "script.py"], tmp_path, COOP_SIM=str(coop_sim.program))
    assert done.code == code
    assert says in done.err.splitlines()[-1]
    assert list(done.files) == ["script.py"]


def test_a_silent_exit_is_told(tmp_path, coop_sim):
    """Also with the code that is ours for a wrong call."""
    done = plan(tmp_path, "raise SystemExit(2)", coop_sim=coop_sim)
    assert (done.code, done.out) == (2, "")
    assert "the program ended with exit code 2 before 2 steps of it" in done.err


def test_a_plan_is_not_lost_where_a_file_cannot_be_written(tmp_path, coop_sim):
    (tmp_path / "gone").mkdir()
    script = "import pathlib\npathlib.Path('gone').rmdir()\nfor _ in range(3):\n    train()\n"
    words = ["--trace", "gone/kept.coop", "--picture", "gone/plan.svg", "--ratios", ".9"]
    done = plan(tmp_path, script, *words, coop_sim=coop_sim)
    assert done.code == 2
    for name in ("kept.coop", "plan.svg"):
        says = f"coop plan: gone/{name} was not written: No such file or directory\n"
        assert done.err.count(says) == 1
    assert "\nsmallest " in done.out


def test_a_recording_for_which_there_is_no_room(tmp_path, coop_sim):
    """As where the folder for temporary files is full."""
    (tmp_path / "script.py").write_text(TRAINS + "for _ in range(9): train()\n")
    limited = ["bash", "-c", f"ulimit -f 8 && {shlex.join([*COOP, 'plan', 'script.py'])}"]
    done = run(limited, tmp_path, COOP_SIM=str(coop_sim.program))
    assert (done.code, done.out) == (1, "")
    *steps, why, error = done.err.splitlines()
    assert [line[:17] for line in steps] == [f"coop plan: step {i}" for i in range(1, 6)]
    assert why.endswith(" was not written: File too large; TMPDIR can name another folder")
    assert error.startswith("coop plan: error: ")


def test_of_several_processes_the_first_speaks(tmp_path, coop_sim):
    script = "for _ in range(9): train()\n"
    (tmp_path / "script.py").write_text(TRAINS + script)
    command = [*COOP, "plan", "-m", "torch.distributed.run", "--nproc-per-node", "2", "script.py"]
    done = run(command, tmp_path, COOP_SIM=str(coop_sim.program), OMP_NUM_THREADS="1")
    assert done.code == 0, done.err
    assert [done.err.count(f"coop plan: step {i} of 5") for i in range(1, 6)] == [1] * 5
    assert done.out.startswith("5 steps were recorded: ")


def test_ctrl_c_leaves_what_was_recorded(tmp_path, coop_sim):
    script = """
import os, signal, time
for _ in range(3):
    train()
os.kill(int(os.environ["TELL"]), signal.SIGUSR1)
time.sleep(100)
"""
    (tmp_path / "script.py").write_text(TRAINS + script)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        process = subprocess.Popen(
            [*COOP, "plan", "script.py"],
            cwd=tmp_path,
            env=environment(COOP_SIM=str(coop_sim.program), TELL=str(os.getpid())),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert signal.sigtimedwait({signal.SIGUSR1}, 100) is not None
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=100)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    assert process.returncode == 0, err
    assert "the program ended by signal 2; the plan is of what came before" in err
    assert out.startswith("3 steps were recorded: ")


# --- bad input ---

BAD = {
    "--budget 8Gib script.py": "'8Gib' is no budget: did you mean 8GiB?",
    "--budget 100 script.py": "a pool of 100 bytes cannot be made: it takes 512 bytes",
    "--device tpu script.py": "there is no device 'tpu'; there are cpu, cuda",
    "--steps 1 script.py": "--steps 1: it takes 2 to 1000",
    "--steps few script.py": "--steps: invalid int value: 'few'",
    "--ratios .5,2 script.py": "--ratios: '.5,2' is not shares of the peak, such as .8,.6",
    "--ratios , script.py": "--ratios: ',' is not shares of the peak",
    "--picture plan.jpg script.py": "--picture plan.jpg: pictures are .svg, .html or .png",
    "--picture no/folder/plan.svg script.py": "no/folder/plan.svg cannot be written: No such file",
    "--trace . script.py": "--trace . is a directory",
    "--policy coop script.py": "unrecognized arguments: --policy",
    "missing.py": "there is no file 'missing.py'",
    "python script.py": "without the word python: coop plan train.py",
    "": "which program?",
    "-m": "which module?",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_nothing_runs(tmp_path, coop_sim, words):
    (tmp_path / "script.py").write_text("import torch\nprint('it runs')\n")
    command = [*COOP, "plan", *words.split()]
    done = run(command, tmp_path, COOP_SIM=str(coop_sim.program))
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.startswith("coop plan: error: ")
    assert BAD[words] in done.err
    assert done.err.count("\n") == 1
    assert list(done.files) == ["script.py"]


def test_what_is_missing_is_told_before_anything_runs(tmp_path):
    (tmp_path / "script.py").write_text("print('it runs')")
    done = run([*COOP, "plan", "script.py"], tmp_path, COOP_SIM=str(tmp_path / "none"))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "coop plan: error: coop was installed without its simulator" in done.err
    done = run([*COOP, "plan", "script.py"], tmp_path, LOCAL_RANK="0")
    assert (done.code, done.out) == (2, "")
    assert "it is one plan for all processes: coop plan torchrun ..." in done.err


# --- the knee ---


def costs(*overheads, there=1000):
    """At 100%, 90% ... of a peak of 1000 bytes."""
    ratios = [1 - i / 10 for i in range(len(overheads))]
    rows = [Row(round(1000 * it), it, more, 1) for it, more in zip(ratios, overheads, strict=True)]
    return Costs(1000, 1e9, rows, there)


@pytest.mark.parametrize(
    ("overheads", "knee"),
    [
        ((0, 0.01, 0.02, 0.1, 1.0), 700),
        ((0, 0.01, 0.5, 1.0), 900),
        ((0, 0.01, 0.02, 0.1, None), 800),  # what does not fit is no end of the line
        ((0, 0.01, 0.02, 0.1, None, 0.1), 800),  # nor what is beyond that
        ((0, 0.1, 0.15, 0.17), None),  # it bends the other way
        ((0, 0, 0), None),
        ((0, 0.1), None),
        ((None, 0.1), None),
    ],
)
def test_the_knee_is_farthest_below_the_line(overheads, knee):
    found = costs(*overheads)
    assert (found.knee and found.knee.budget_bytes) == knee


def test_a_knee_that_nobody_can_have_is_none():
    overheads = (0, 0.01, 0.02, 0.04, 0.1, 1.0)  # from 90% down the knee is at 60%
    assert costs(*overheads).knee.budget_bytes == costs(*overheads, there=950).knee.budget_bytes
    low = costs(*overheads, there=650)
    assert (low.knee, low.advised.budget_bytes) == (None, 600)
    assert costs(*overheads, there=400).advised is None


def test_without_a_knee_the_smallest_is_advised_or_all_that_there_is():
    assert costs(0, 0.1, 0.15, 0.17).advised.budget_bytes == 700
    assert costs(0, 0.1, 0.15, 0.17, there=900).advised.budget_bytes == 900
    assert costs(0, None, there=999).advised is None


def test_the_smallest_has_none_above_it_that_does_not_fit():
    assert costs(0, 0.1, None, 0.2).smallest.budget_bytes == 900
    assert costs(None, 0.1).smallest is None
