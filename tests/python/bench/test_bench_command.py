"""`coop bench` as one types it: bad input, --dry-run, --show, and one that is interrupted."""

import json
import re
import signal
import subprocess
import sys

import pytest
from coop.bench import commit
from coop.bench.catalog import NETWORKS
from coop.cli import main
from measured_cells import CELLS
from processes import below, is_running, wait_until

COMMAND = [sys.executable, "-m", "coop", "bench"]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main(["bench", *words])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[-1].startswith("coop bench: error: ")
    return lines[-1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bert"], "there is no network 'bert'; did you mean bert-large?"),
        (["xyz"], "there are resnet50, resnet50-full, "),
        (["--ratios", ".5,2"], "is not shares of the peak"),
        (["--policies", "coop,dtrr"], "there is no policy 'dtrr'; there are coop, "),
        (["--peers", "compiled"], "there is no peer 'compiled'; there are checkpoint, "),
        (["--steps", "1"], "it takes 2 to 10000"),
        (["--device", "tpu"], "invalid choice: 'tpu'"),
        (["--time-limit", "9"], "'9' is not a time, such as 9min"),
        (["--time-limit", "0s"], "is not a time"),
        (["--batch-in", "16"], "'16' is not a size, such as 16GiB"),
        (["--plot", "bench.pdf"], "pictures are .svg, .html or .png"),
        (["--json", "no/such.json"], "--json no/such.json cannot be written"),
        (["--results", "."], "is a directory"),
        (["--show", "none.jsonl"], "there is no such file"),
    ],
)
def test_bad_input(capsys, words, says):
    assert says in refused(capsys, *words)


def test_a_file_of_somebody_else_is_left_alone(capsys, tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"mine": 1}')
    for option in ("--show", "--results"):
        assert "nothing that coop bench has written" in refused(
            capsys, "--device", "cpu", option, str(path)
        )
    assert path.read_text() == '{"mine": 1}'


def test_dry_run_lists_the_cases_and_their_time(capsys, tmp_path):
    words = ["bench", "spos", "--device", "cpu", "--dry-run", "--smallest", "--batch-in", "64MiB"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"spos at 50% +4 +\d+ (s|min)", lines[1])
    assert re.fullmatch(r"spos with as large a batch as fits +2 +\d+ (s|min)", lines[-3])
    assert re.fullmatch(r"26 cells in 8 processes, about \d+ (s|min)", lines[-1])
    assert list(tmp_path.iterdir()) == []


def test_the_whole_grid_has_all_networks(capsys, monkeypatch):
    monkeypatch.setattr("coop.bench.catalog.find_spec", lambda name: name)
    main(["bench", "--device", "cuda", "--dry-run"])
    printed = capsys.readouterr().out
    for name, network in NETWORKS.items():
        assert (f"\n{name} beside its peers" in printed) == (network.variant_of is None)


def test_neither_policies_nor_peers_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "spos", "--policies", "none", "--peers", "none", "--dry-run"])
    assert "nothing is left to measure" in capsys.readouterr().err


def test_what_is_for_a_gpu_only_is_named_and_the_rest_goes_on(capsys):
    main(["bench", "swin-t-320", "spos", "--device", "cpu", "--dry-run"])
    said = capsys.readouterr()
    assert said.err == "coop bench: swin-t-320 is left out: it is for a GPU only\n"
    assert "spos at 50%" in said.out
    main(["bench", "resnet50-full", "spos", "--device", "cuda", "--dry-run"])
    said = capsys.readouterr()
    assert said.err == "coop bench: resnet50-full is left out: it is for a CPU only\n"
    assert "spos at 50%" in said.out


def test_a_missing_package_is_named_and_the_rest_goes_on(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    main(["bench", "resnet50", "spos", "--device", "cuda", "--dry-run"])
    said = capsys.readouterr()
    assert said.err == (
        "coop bench: resnet50 is left out: it needs torchvision (pip install torchvision)\n"
    )
    assert "spos at 50%" in said.out and "resnet50" not in said.out
    words = ("resnet50", "--device", "cuda", "--dry-run")
    assert "nothing is left to measure" in refused(capsys, *words)


def test_show_needs_nothing_but_the_file(capsys, tmp_path):
    kept = tmp_path / "kept.jsonl"
    kept.write_text("".join(json.dumps(cell) + "\n" for cell in CELLS))
    words = ["bench", "--show", str(kept), "--json", "all.json", "--plot", "all.html", "--all"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert main(["bench", "--show", "all.json", "--all"]) == 0
    assert capsys.readouterr().out == shown
    page = (tmp_path / "all.html").read_text()
    assert "</svg>" in page and "Search latency" in page
    assert main(["bench", "spos", "--show", str(kept)]) == 0
    assert "BERT" not in capsys.readouterr().out
    assert "torch" not in _imported_by(["bench", "--show", str(kept)])


def _imported_by(words):
    code = f"import sys; from coop.cli import main; main({words!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.splitlines()[-1].split()


def test_the_commit_is_gits_and_else_the_version(monkeypatch, tmp_path):
    git = ["git", "-C", str(commit._ROOT), "rev-parse", "--short", "HEAD"]
    head = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    if head:
        assert commit.commit_of_this().removesuffix("-changed") == head
    monkeypatch.setattr(commit, "_ROOT", tmp_path)
    assert commit.commit_of_this() == commit.coop.__version__


def test_interrupted_it_leaves_what_is_done_and_goes_on_later(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
    few = ["--ratios", ".7", "--policies", "dtr,dte", "--peers", "none", "--steps", "2"]
    words = ["spos", "--device", "cpu", "--results", "kept.jsonl", *few]
    options = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    run = subprocess.Popen([*COMMAND, *words], **options)
    for line in run.stderr:
        if "[1/2" in line:
            break
    wait_until(lambda: len(below(run.pid)) == 3)  # one of the case, and two that take turns
    started = below(run.pid)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130
    wait_until(lambda: not any(map(is_running, started)))
    assert "coop bench: interrupted\n" in err
    assert "left: 1 cell in 1 process, " in err
    assert "SPOS" in out
    done = (tmp_path / "kept.jsonl").read_text()
    assert '"variant": "dtr"' in done
    rest = subprocess.run([*COMMAND, *words, "--resume"], **options)
    assert rest.returncode == 0, rest.stderr
    all_of_it = (tmp_path / "kept.jsonl").read_text()
    assert all_of_it.startswith(done)
    cells = [json.loads(line) for line in all_of_it.splitlines()]
    assert [it["variant"] for it in cells] == ["dtr", "dte"]
    assert {it["status"] for it in cells} == {"ok"}
    assert {it["losses"] for it in cells} == {"equal"}
    again = subprocess.run([*COMMAND, *words, "--resume", "--dry-run"], **options)
    assert again.stdout == "All of it is there already.\n"
