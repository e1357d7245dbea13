"""What `coop run` can be told, and what it says to what makes no sense."""

import gzip
import json
import os
import re
import sys

import pytest
from command_line import COOP, ROOT, run

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402
from coop.cli import launch  # noqa: E402
from coop.cli.launch import _interpreter_options  # noqa: E402
from coop.cli.parser import Parser  # noqa: E402
from coop.cli.run import EXPERIMENTS, POLICIES  # noqa: E402

TRAINS = """
import sys, warnings
import torch, coop
from torch import nn
model = nn.Sequential(*[it for _ in range(8) for it in (nn.Linear(256, 256), nn.Tanh())])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    with coop.budget(f"{1 + step}GiB"):  # ours: it is ignored
        optimizer.zero_grad()
        model(torch.randn(1024, 256)).square().mean().backward()
        optimizer.step()
print(coop.stats().budget_bytes, coop.stats().evictions > 0)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One run for all that can be seen of it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "script.py").write_text(TRAINS)
    options = ["--budget", "14MiB", "--device", "cpu", "--policy", "dtr", "--trace", "steps.coop"]
    return folder, run([*COOP, "run", *options, "script.py"], folder)


def test_the_programs_own_budget_is_ignored_and_it_is_told_once(trained):
    _, done = trained
    assert (done.code, done.out) == (0, f"{14 << 20} True\n"), done.err
    said = "the program's own budget of 1.0 GiB is ignored: `coop run` has put one of 14.0 MiB"
    assert done.err.count("IgnoredBudgetWarning") == done.err.count(said) == 1
    assert "script.py:8: " in done.err


@pytest.mark.parametrize("begins", ["from coop import budget", "import coop; budget = coop.budget"])
def test_a_program_may_import_coop_before_torch(tmp_path, begins):
    # As sorted imports have it. The budget was begun by modules of coop that were half loaded.
    (tmp_path / "script.py").write_text(
        f"{begins}\nimport torch\nwith budget('1GiB'):\n    print(torch.ones(3).sum().item())\n"
    )
    done = run([*COOP, "run", "--budget", "16MiB", "script.py"], tmp_path)
    assert (done.code, done.out) == (0, "3.0\n"), done.err
    assert "coop: budget     16.0 MiB on cpu" in done.lines


FORKS_FIRST = """
import os
child = os.fork()
import torch, coop
coop.last_oom()  # loads what is asked
print("parent" if child else "child", torch.ops.coop.has_budget(), flush=True)
if child:
    os.waitpid(child, 0)
"""


def test_a_process_that_was_forked_before_torch_was_imported_has_none(tmp_path):
    (tmp_path / "script.py").write_text(FORKS_FIRST)
    done = run([*COOP, "run", "--budget", "16MiB", "script.py"], tmp_path)
    assert done.code == 0, done.err
    assert sorted(done.out.splitlines()) == ["child False", "parent True"]
    assert len(done.err.splitlines()) == 5


def test_a_daemon_is_told_that_it_has_none(tmp_path):
    """What forks and ends before torch is imported: nothing else of the program is left."""
    script = """
import os
reader, writer = os.pipe()
if os.fork():
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
os.close(reader)
if os.fork():
    os._exit(0)
import torch
"""
    (tmp_path / "script.py").write_text(script)
    done = run([*COOP, "run", "--budget", "16MiB", "script.py"], tmp_path)
    assert (done.code, done.err.count("there is no budget")) == (0, 1), done.err


def test_the_five_lines(trained):
    _, done = trained
    amount = r"[\d.]+ (B|KiB|MiB|GiB)"
    time = r"[\d.]+ (us|ms|s)"
    wanted = [
        r"coop: budget     14\.0 MiB on cpu",
        rf"coop: peak       {amount}",
        r"coop: evicted    \d+ tensors",
        r"coop: recomputed \d+ operators, mostly aten::\w+",
        rf"coop: cost       {time} of recomputing in {time}, [\d.]+%",
    ]
    for line, pattern in zip(done.lines, wanted, strict=True):
        assert re.fullmatch(pattern, line)


def test_the_trace_has_the_optimizers_steps(trained, coop_sim):
    folder, _ = trained
    info = coop_sim.json("info", folder / "steps.coop")
    assert info["steps"] == 2  # of three: up to the end of the first it is preparation


BAD = {
    "--budget 8Gib script.py": "'8Gib' is no budget: did you mean 8GiB?",
    "--budget 8G script.py": "'8G' is no budget: did you mean 8GiB?",
    "--budget 1.5gb script.py": "'1.5gb' is no budget: did you mean 1.5GB?",
    "--budget much script.py": "'much' is no budget: write for example 8GiB, 512MB or 50%",
    "--budget -1 script.py": "'-1' is no budget",
    "--budget 0 script.py": "'0' is no budget",
    "--budget 0GiB script.py": "'0GiB' is no budget: write for example 8GiB, 512MB or 50%",
    "--budget 99999999999999999999GiB script.py": "is no budget: write for example 8GiB",
    "--budget 101% script.py": "'101%' is no budget",
    "--budget 100 script.py": "a pool of 100 bytes cannot be made: it takes 512 bytes",
    "--budget": "--budget: expected one argument",
    "--device tpu script.py": "there is no device 'tpu'; there are cpu, cuda",
    "--policy best script.py": "there is no policy 'best'; there are coop, coop-paper, dtr",
    "--trace no/folder/x.coop script.py": "no/folder/x.coop cannot be written: No such file",
    "--trace . script.py": "--trace . is a directory",
    "--bugdet 8GiB script.py": "unrecognized arguments: --bugdet",
    "missing.py": "there is no file 'missing.py'",
    "python script.py": "without the word python: coop run train.py",
    "": "which program?",
    "-m": "which module?",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_nothing_runs(tmp_path, words):
    # What only PyTorch can tell is told when the program imports it.
    (tmp_path / "script.py").write_text("import torch\nprint('it runs')\n")
    done = run([*COOP, "run", *words.split()], tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("coop run: error: ")
    assert BAD[words] in done.err
    assert done.err.count("\n") == 1
    assert list(done.files) == ["script.py"]


def test_no_program_and_no_place_for_a_file(tmp_path):
    (tmp_path / "script.py").write_text("print('it runs')\n")
    (tmp_path / "steps.coop").write_text("coop-trace 2\n")
    (tmp_path / "steps.coop.gz").write_bytes(gzip.compress(b"coop-trace 2\n"))
    os.mkfifo(tmp_path / "fifo")
    for command in ("run", "plan"):
        for words, why in {
            "--trace fifo script.py": "--trace fifo is not an ordinary file",
            "steps.coop": "steps.coop is a recording, not a program; coop sim sweep reads it",
            "steps.coop.gz": "steps.coop.gz is a recording, not a program",
        }.items():
            done = run([*COOP, command, *words.split()], tmp_path)
            assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
            assert done.err.startswith(f"coop {command}: error: {why}")
    assert (tmp_path / "fifo").is_fifo()


def test_without_a_budget_there_is_one_of_what_is_free(tmp_path):
    (tmp_path / "script.py").write_text(
        "import torch, coop\nprint(coop.stats().budget_bytes, coop.budget('100%').bytes)"
    )
    done = run([*COOP, "run", "-q", "script.py"], tmp_path)
    assert (done.code, done.err) == (0, "")
    budget, whole = map(int, done.out.split())
    assert 0 < budget < 0.91 * whole


def test_policies_are_those_that_there_are():
    _plugin.load()
    names = ", ".join(POLICIES + EXPERIMENTS)
    with pytest.raises(ValueError, match=f"there are {names}$"):
        torch.ops.coop.check_policy("best")


@pytest.mark.parametrize(
    ("called", "options"),
    [
        (["-m", "coop"], []),
        (["-u", "-W", "error", "-m", "coop"], ["-u", "-W", "error"]),
        (["-um", "coop"], ["-u"]),
        (["-Xdev", "/bin/coop"], ["-Xdev"]),
        (["/bin/coop"], []),
    ],
)
def test_python_is_called_as_we_were(monkeypatch, called, options):
    arguments = ["run", "-m", "x"]
    monkeypatch.setattr(sys, "orig_argv", ["python", *called, *arguments])
    monkeypatch.setattr(sys, "argv", ["coop", *arguments])
    assert _interpreter_options() == options


def test_another_sitecustomize_is_not_lost(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = True\n")
    (tmp_path / "script.py").write_text(
        "import json, sys\nprint(json.dumps([customized, sys.modules['sitecustomize'].__file__]))"
    )
    path = os.pathsep.join([str(ROOT / "python"), str(tmp_path)])
    done = run([*COOP, "run", "script.py"], tmp_path, PYTHONPATH=path)
    assert json.loads(done.out) == [True, str(tmp_path / "sitecustomize.py")]


@pytest.mark.parametrize(
    ("words", "is_launcher"),
    [
        ("torchrun script.py", True),
        ("bin/torchrun script.py", True),
        ("bin/accelerate launch script.py", True),
        ("bin/accelerate env", False),
        ("no/torchrun script.py", False),
        ("script.py torchrun", False),
        ("-m torch.distributed.run script.py", True),
        ("-m torchrun script.py", False),
    ],
)
def test_launchers_are_known_by_name_and_by_path(tmp_path, monkeypatch, words, is_launcher):
    """The budget is for what they start; by their path they had it themselves."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("torchrun", "accelerate"):
        (tmp_path / "bin" / name).touch()
    parser = Parser("run")
    launch.add_program(parser)
    program = launch.program_of(parser, parser.parse_args(words.split()))
    assert program.is_launcher == is_launcher
    if words.startswith("bin/"):
        assert program.arguments == words.split()  # that file, and no other of its name


TOGETHER = """
import os
import torch
from torch import distributed
distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(rank)
weight = torch.ones(256, 256) / 256
for _ in range(3):
    kept = [torch.randn(1024, 256)]
    for _ in range(12):
        kept.append((kept[-1] @ weight).tanh())
    gradient = sum(it.t() @ it for it in kept)
    distributed.all_reduce(gradient)
    weight = weight - 1e-6 * gradient
torch.save(weight, f"weight-{rank}.pt")
distributed.destroy_process_group()
"""


def train_together_alone():
    """The same in this process, plain."""
    generators = [torch.Generator().manual_seed(rank) for rank in range(2)]
    weight = torch.ones(256, 256) / 256
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for _ in range(3):
        gradients = []
        for generator in generators:
            kept = [torch.randn(1024, 256, generator=generator)]
            for _ in range(12):
                kept.append((kept[-1] @ weight).tanh())
            gradients.append(sum(it.t() @ it for it in kept))
        weight = weight - 1e-6 * (gradients[0] + gradients[1])
    torch.set_num_threads(threads)
    return weight


@pytest.mark.skipif(not torch.distributed.is_available(), reason="without torch.distributed")
def test_torchrun_before_and_behind(tmp_path):
    budget = ["run", "--budget", "10MiB"]
    launcher = ["--standalone", "--nproc-per-node", "2"]
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    commands = {
        "before": [*torchrun, *launcher, "-m", "coop", *budget],
        "behind": [*COOP, *budget, "torchrun", *launcher],
    }
    wanted = train_together_alone()
    for name, command in commands.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "script.py").write_text(TOGETHER)
        done = run([*command, "script.py"], folder)
        assert done.code == 0, done.err
        evicted = re.findall(r"^coop\[([01])\]: evicted    (\d+) tensors$", done.err, re.MULTILINE)
        assert sorted(rank for rank, _ in evicted) == ["0", "1"], done.err
        assert all(int(count) > 0 for _, count in evicted)
        for rank in range(2):
            assert torch.equal(torch.load(folder / f"weight-{rank}.pt"), wanted)


@pytest.mark.parametrize("option", ["--trace", "--report"])
def test_a_file_that_is_not_written_is_told(tmp_path, coop_sim, option):
    (tmp_path / "script.py").write_text("print('without torch')\n")
    command = [*COOP, "run", option, "wanted", "script.py"]
    done = run(command, tmp_path, COOP_SIM=str(coop_sim.program))
    assert (done.code, done.out) == (0, "without torch\n")
    says = f"coop run: {tmp_path}/wanted was not written: the program did not import torch\n"
    assert done.err == says


def test_a_torch_that_was_not_seen_is_told(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nsys.modules['torch'] = sys\n")
    done = run([*COOP, "run", "script.py"], tmp_path)
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("there was no budget\n")
    assert done.err.count("\n") == 1
