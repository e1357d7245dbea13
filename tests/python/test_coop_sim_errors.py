"""Bad input: one line that says what is wrong and where, exit code 2, nothing on stdout."""

import gzip
import os
import resource
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESNET = "tests/data/h200/resnet50.log.gz"
AT = ("--policy", "coop", "--ratio", ".5")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "which command?"),
        (["walk"], "there is no command 'walk'; there are run, sweep, explain"),
        (["rnu", RESNET, "--ratio", ".5"], "there is no command 'rnu'; did you mean run?"),
        (["--ratio", ".5"], "not expected: .5 --ratio"),
        (["run"], "TRACE is required"),
        (["run", RESNET, "--ratio", ".5"], "--policy is required"),
        (["run", RESNET, "--policy", "coop"], "either --ratio or --budget"),
        (["run", RESNET, *AT, "--budget", "8GiB"], "either --ratio or --budget"),
        (["run", RESNET, *AT, "--nonsense"], "--nonsense"),
        (["run", RESNET, *AT, "--steps", "0"], "--steps: Value 0 not in range"),
        (["run", RESNET, *AT, "--steps", "many"], "--steps"),
        (["run", RESNET, *AT, "--format", "xml"], "--format: xml not in {coop,dtr}"),
        (["run", RESNET, "--policy", "coop", "--budget", "8 GiBs"], "unknown unit 'GiBs'"),
        (["run", RESNET, "--policy", "coop", "--budget", "0"], "a pool of 0 bytes"),
        (["run", RESNET, "--policy", "coop", "--budget", "9TiB"], "cannot be made"),
        (["run", RESNET, "--policy", "oracle", "--ratio", ".5"], "there are coop, coop-paper, dtr"),
        (["run", RESNET, "--policy", "drt", "--ratio", ".5"], "'drt'; did you mean dtr?"),
        (["run", RESNET, *AT, "--no-fragmentation"], "means nothing with --no-fragmentation"),
        (["run", RESNET, *AT, "--map", "map.gif"], "map.gif: pictures are written as .svg,"),
        (["run", RESNET, *AT, "--map", "/nowhere/map.png"], "/nowhere/map.png: No such file"),
        (["run", RESNET, *AT, "--map", "/nowhere/map.svg"], "/nowhere/map.svg: No such file"),
        (["explain", RESNET, "--policy", "coop", "--ratio", "0"], "--ratio 0: a ratio is"),
        (["sweep", RESNET, "--policies", "coop,oracle", "--ratios", ".5"], "no policy 'oracle'"),
        (["sweep", RESNET, "--policies", "coop", "--ratios", ".5,-1"], "--ratios -1: a ratio is"),
        (["sweep", RESNET, "--policies", "coop", "--ratios", ".5", "--jobs", "0"], "--jobs"),
        (["sweep", RESNET, "--policies", "coop", "--ratios", ".5", "--plot", "x"], "x: pictures"),
        (["make", "perceptron"], "there is no network 'perceptron'; there are chain"),
        (["make", "residal"], "there is no network 'residal'; did you mean residual?"),
        (["make", "chain", "--seed", "-1"], "--seed -1: a seed is a number from 0"),
        (["make", "chain", "--seed", "9" * 30], "a seed is a number from 0"),
        (["make", "chain", "--steps", "0"], "runs for 1 to 100000 steps"),
        (["make", "chain", "-o", "/nowhere/x"], "/nowhere/x: No such file or directory"),
    ],
)
def test_bad_arguments(coop_sim, arguments, says):
    assert says in coop_sim.refuses(*arguments)


@pytest.mark.parametrize(
    "ratio", ["0", "-0", "-1", "-.5", "nan", "inf", "1e400", "80", "half", ".5x"]
)
def test_bad_ratios(coop_sim, ratio):
    assert f"--ratio {ratio}: a ratio is budget / peak" in coop_sim.refuses(
        "run", RESNET, "--policy", "coop", "--ratio", ratio
    )


HEADER = "coop-trace 1\n"
DTR_START = '{"INSTRUCTION": "ANNOTATE", "ANNOTATION": "START"}\n'
BROKEN = {
    "empty": (b"", "FILE: the file is empty"),
    "not a trace": (b"hello\n", "FILE:1: not a trace"),
    "no text": (b"\x89PNG\x00", "FILE:1: not a trace: the first line is '?PNG?'"),
    "other JSON": (b'{"a": 1}\n', "FILE:1: not a trace"),
    "other JSON in one line": (b'{"a": 1}', "FILE:1: not a trace"),
    "version": (b"coop-trace 9\n", "FILE:1: "),
    "cut off": (HEADER.encode() + b"source 0 4096\n", "FILE: "),
    "within a line": (HEADER.encode() + b"source 0 40", "FILE:2: the file ends within this line"),
    "unknown instruction": (HEADER.encode() + b"jump 0\n", "FILE:2: unknown instruction 'jump'"),
    "missing field": (HEADER.encode() + b"source 0\n", "FILE:2: the line has no"),
    "negative size": (HEADER.encode() + b"source 0 -5\n", "FILE:2: "),
    "enormous size": (HEADER.encode() + b"source 0 99999999999999\n", "FILE:2: "),
    "unknown storage": (HEADER.encode() + b"release 7\n", "FILE:2: "),
    "released twice": (HEADER.encode() + b"source 0 8\nrelease 0\nrelease 0\n", "FILE:4: "),
    "DTR: not JSON": (DTR_START.encode() + b"{nonsense}\n", "FILE:2: "),
    "DTR: cut off": (DTR_START.encode() + b'{"INSTRUCTION": "CA', "FILE:2: "),
    "DTR: unknown": (DTR_START.encode() + b'{"INSTRUCTION": "JUMP"}\n', "FILE:2: "),
    "DTR: missing field": (DTR_START.encode() + b'{"INSTRUCTION": "CALL"}\n', "FILE:2: field"),
    "not gzip inside": (b"\x1f\x8b broken", "FILE: broken gzip"),
    "gzip cut off": (gzip.compress(b"coop-trace 1\n" * 1000)[:40], "FILE: broken gzip"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(coop_sim, tmp_path, case):
    content, says = BROKEN[case]
    path = tmp_path / "trace"
    path.write_bytes(content)
    says = says.replace("FILE", str(path))
    assert coop_sim.refuses("run", path, *AT, "--json").startswith(says)
    assert coop_sim.refuses("info", path, "--json").startswith(says)
    sweep = ("sweep", RESNET, path, "--policies", "coop", "--ratios", ".5", "--json")
    assert coop_sim.refuses(*sweep).startswith(says)


def test_files_that_are_not_there(coop_sim, tmp_path):
    assert "is a directory, not a file" in coop_sim.refuses("info", tmp_path)
    assert "No such file or directory" in coop_sim.refuses("info", tmp_path / "nothing")


def test_pipes_and_devices_are_not_read(coop_sim, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # nobody writes to it: to open it would be to wait for ever
    for path in (pipe, "/dev/zero", "/dev/null"):
        for command in (["run", path, *AT], ["info", path], ["explain", path, *AT]):
            assert f"{path}: is a pipe or a device, not a file" in coop_sim.refuses(*command)


def test_a_file_that_unpacks_to_more_than_a_trace_is_refused(coop_sim, tmp_path):
    # 64 GiB of nothing, in 1,024 parts of 64 MiB each.
    bomb = tmp_path / "bomb.trace.gz"
    bomb.write_bytes(1024 * gzip.compress(bytes(64 << 20)))
    says = f"{bomb}: more than 8 MiB of text: is this a trace? If it is, --max-text sets the limit"
    assert says in coop_sim.refuses("info", bomb, "--max-text", "8MiB")
    # Without the option there is a limit too, and what is read takes no more memory than that.
    done = subprocess.run(
        [coop_sim.program, "info", bomb],
        text=True,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{bomb}: more than 1 GiB of text" in done.stderr


def test_the_limit_can_be_set(coop_sim, small_trace):
    size = small_trace.stat().st_size
    coop_sim.text("info", small_trace, "--max-text", size)
    assert "of text" in coop_sim.refuses("info", small_trace, "--max-text", size - 1)
    assert "unknown unit" in coop_sim.refuses("info", small_trace, "--max-text", "1 heap")


def test_a_trace_that_needs_nothing_has_no_ratio(coop_sim, tmp_path):
    path = tmp_path / "nothing.trace"
    path.write_text("coop-trace 1\nend 0\n")
    assert "no size for a pool" in coop_sim.refuses("run", path, *AT)
    assert coop_sim.json("run", path, "--policy", "coop", "--budget", "1MiB")["status"] == "ok"
    assert coop_sim.json("info", path)["calls"] == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": has no figures"),
        ("ours,x,.5,1\n", ":1: the header is missing"),
        ("reference,trace,ratio,time\nours,x,.5\n", ":2: four fields are wanted"),
        ("reference,trace,ratio,time\nours,x,half,1\n", ":2: the ratio 'half' is not a number"),
        ("reference,trace,ratio,time\nours,x,.5,-1\n", ":2: the time '-1' is negative"),
    ],
)
def test_broken_references(coop_sim, tmp_path, text, says):
    path = tmp_path / "reference.csv"
    path.write_text(text)
    sweep = ("sweep", RESNET, "--policies", "coop", "--ratios", ".5", "--reference", path)
    assert coop_sim.refuses(*sweep).startswith(f"{path}{says}")


def test_output_that_cannot_be_written(coop_sim):
    for words in (["policies"], ["--help"], ["run", "--help"], ["--version"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [coop_sim.program, *words], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 2
        assert "could not be written" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["policies"],
        ["--help"],
        ["info", RESNET],
        ["run", RESNET, *AT, "--json"],
        ["make", "chain"],
        ["sweep", RESNET, "--policies", "coop", "--ratios", ".9"],
    ],
    ids=lambda words: words[0],
)
def test_output_that_is_closed(coop_sim, words):
    # As other tools have it: one line, and an exit code.
    command = ["bash", "-c", '"$@" >&-', "bash", coop_sim.program, *words]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    said = "coop-sim: error: the output could not be written: Bad file descriptor\n"
    assert done.stderr == said
