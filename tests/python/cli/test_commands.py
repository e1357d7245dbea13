"""`coop` itself: help that fits a screen, the doctor, and machines where something is missing."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COOP, PYTHON, ROOT, environment, run
from coop.cli import COMMANDS, support

HELP = {
    "coop": ["--help"],
    "coop run": ["run", "--help"],
    "coop plan": ["plan", "--help"],
    "coop report": ["report", "--help"],
    "coop bench": ["bench", "--help"],
    "coop doctor": ["doctor", "--help"],
}


@pytest.mark.parametrize("name", HELP)
def test_help_fits_a_screen_and_has_an_example(tmp_path, name):
    done = run([*COOP, *HELP[name]], tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert re.search(rf"^  {name}( |$)", done.out, re.MULTILINE)


def test_help_names_every_command(tmp_path):
    help = run([*COOP], tmp_path)
    assert help.code == 2
    assert re.findall(r"^  (\w+)   +\w", help.out, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("rnu", "there is no command 'rnu'; did you mean run?"),
        ("train.py", "did you mean coop run train.py?"),
        ("--budget", "there are run, plan, report, bench, doctor, sim"),
    ],
)
def test_unknown_commands(tmp_path, word, says):
    done = run([*COOP, word], tmp_path)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(rf"coop: error: .*{re.escape(says)}\n", done.err)


@pytest.mark.parametrize("words", [["--help"], ["doctor", "--json"]])
def test_what_cannot_be_written(tmp_path, words):
    """Nobody reads on, or the disk is full."""
    command = [*COOP, *words]
    options = {"cwd": tmp_path, "env": environment(), "stderr": subprocess.PIPE, "text": True}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, **options)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, **options)
    assert done.returncode == 2
    assert re.fullmatch(r"coop: error: .*No space left on device\n", done.stderr)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_what_is_closed(tmp_path, closed):
    """Nobody is to hear of it. What is run finds it closed, and not open on something of ours."""
    (tmp_path / "script.py").write_text("import sys\nsys.exit(3 + (sys.stdout is None))")
    for words, code in {"--version": 0, "run script.py": 3 + (">&-" in closed.split())}.items():
        command = ["bash", "-c", f"{shlex.join(COOP)} {words} {closed}"]
        done = run(command, tmp_path)
        assert (done.code, done.err) == (code, "")


SUBCOMMANDS = ("run", "sweep", "explain", "report", "info", "check", "make", "policies")


@pytest.mark.parametrize("command", ["", *SUBCOMMANDS])
def test_help_of_the_simulator_fits_a_screen_and_has_an_example(coop_sim, command):
    help = coop_sim.text(*command.split(), "--help")
    lines = help.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert re.search(rf"^  coop-sim {command}", help, re.MULTILINE)
    assert f"\n  {command}" in coop_sim.text("--help")


def test_examples_of_the_simulator_run_one_after_the_other(tmp_path, coop_sim):
    examples = re.findall(r"^  coop-sim (.*)$", coop_sim.text("--help"), re.MULTILINE)
    assert len(examples) == 5
    for words in examples:
        done = run([*COOP, "sim", *words.split()], tmp_path, COOP_SIM=str(coop_sim.program))
        assert done.code == 0, done.err


def test_the_simulator_is_handed_what_was_said(tmp_path, coop_sim):
    ours = run([*COOP, "sim", "policies", "--json"], tmp_path, COOP_SIM=str(coop_sim.program))
    assert (ours.code, ours.out) == (0, coop_sim.text("policies", "--json"))
    wrong = run([*COOP, "sim", "no-such"], tmp_path, COOP_SIM=str(coop_sim.program))
    assert (wrong.code, wrong.err) == (2, coop_sim.run("no-such").stderr)


def test_without_a_simulator_it_says_what_to_install(tmp_path):
    done = run([*COOP, "sim", "policies"], tmp_path, COOP_SIM=str(tmp_path / "none"))
    assert done.code == 2
    assert re.fullmatch(r"coop sim: error: .*libcli11-dev.* then coop again\n", done.err)


# --- the doctor ---


def test_the_doctor_finds_nothing_wrong(tmp_path, coop_sim):
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
    done = run([*COOP, "doctor", "--json"], tmp_path, COOP_SIM=str(coop_sim.program))
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["works"]
    names = ["coop", "Python", "PyTorch", "plugin", "self-test", "cpu", "cuda", "simulator"]
    assert [it["what"] for it in found["findings"]] == names
    listed = {it["what"] for it in found["together_with"]}
    asked = {"FSDP", "DeepSpeed", "NCCL", "CUDA graphs", "bitsandbytes", "flash-attn", "xformers"}
    assert asked <= listed
    assert "Triton kernels" in listed


def test_the_doctor_claims_what_tests_show():
    for each in support.TABLE:
        assert each.state in (support.WORKS, support.PASSES, support.REFUSED)
        file, function = each.test.split("::")
        assert f"\ndef {function}(" in (ROOT / "tests/python" / file).read_text()


def test_the_doctor_says_what_to_do(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
    done = run([*COOP, "doctor"], tmp_path, COOP_PLUGIN=str(tmp_path / "none.so"))
    assert (done.code, done.err) == (1, "")
    assert re.search(r"^BAD  plugin .*\n +-> install coop again", done.out, re.MULTILINE)
    assert done.out.endswith("coop does not work here.\n")


# --- without PyTorch ---

INSTALL = "pip install 'torch>=2.11,<2.16'"


@pytest.fixture(scope="module")
def bare_python() -> list[str]:
    """The Python that .venv is made from."""
    python = [sys._base_executable, "-s"]
    look = "import importlib.util as it; print(it.find_spec('torch'))"
    found = subprocess.run([*python, "-c", look], text=True, capture_output=True).stdout
    if found != "None\n":
        pytest.skip("this Python has PyTorch outside of .venv, too")
    return python


def test_without_pytorch_it_says_what_to_install(tmp_path, bare_python):
    (tmp_path / "script.py").write_text("print('it runs')")
    done = run([*bare_python, "-m", "coop", "run", "script.py"], tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.endswith(f"{INSTALL}, then install coop again\n")
    done = run([*bare_python, "-c", "import coop; coop.budget('1GiB')"], tmp_path)
    assert done.code == 1
    last_line = done.err.splitlines()[-1]
    assert last_line.startswith("ModuleNotFoundError: coop: PyTorch is not installed here")
    assert INSTALL in last_line
    done = run([*bare_python, "-m", "coop", "doctor"], tmp_path)
    assert done.code == 1
    assert f"-> {INSTALL}" in done.out
    assert done.out.count(INSTALL) == 1


def test_an_old_pytorch_is_told_what_to_install(tmp_path):
    """Also one that lacks what we ask of it."""
    (tmp_path / "torch.py").write_text("__version__ = '2.4.1'\n")
    done = run([*PYTHON, "-c", "import coop; coop.budget('1GiB')"], tmp_path)
    assert done.code == 1
    last_line = done.err.splitlines()[-1]
    assert last_line.startswith("RuntimeError: coop works with PyTorch 2.11 to 2.15, and this is")
    assert INSTALL in last_line


def test_a_wheel_is_not_built_without_pytorch(tmp_path, bare_python):
    command = ["cmake", "--preset", "plugin", "-B", tmp_path / "build"]
    definitions = ["-D", "SKBUILD=ON", "-D", f"Python_EXECUTABLE={bare_python[0]}"]
    done = subprocess.run([*command, *definitions], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode != 0
    assert INSTALL in " ".join(done.stderr.split())


def test_versions_are_those_of_the_plugin():
    header = (ROOT / "src/plugin/torch_version.hpp").read_text()
    oldest, newest = re.findall(r"#define COOP_\w+_TORCH_MINOR (\d+)", header)
    assert f"pip install 'torch>=2.{oldest},<2.{int(newest) + 1}'" == INSTALL
