"""A program's log under `coop run` is what it is without; unless it asks for ours."""

import pytest
from command_line import COOP, PYTHON, run

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

LOGS = """
import logging
logging.basicConfig(level=logging.DEBUG, filename="all.log", format="%(name)s %(message)s")
import torch
ASK
torch.ones(100_000).sum()
logging.info("over")
"""


@pytest.mark.parametrize(("is_asked", "options"), [(False, []), (True, ["-q"]), (True, [])])
def test_the_end_is_told_to_those_who_name_us(tmp_path, is_asked, options):
    ask = "logging.getLogger('coop').setLevel(logging.INFO)" if is_asked else ""
    (tmp_path / "script.py").write_text(LOGS.replace("ASK", ask))
    done = run([*COOP, "run", "--budget", "1GiB", *options, "script.py"], tmp_path)
    assert done.code == 0, done.err
    lines = done.files["all.log"].decode().splitlines()
    assert [it for it in lines if it.startswith("root ")] == ["root over"]
    ours = [it for it in lines if it.startswith("coop ")]
    assert [it.split(":")[0] for it in ours] == (
        ["coop budget of 1.0 GiB ends with the program"] if is_asked else []
    )
    assert len(done.lines) == (0 if options else 5)


def test_nothing_is_printed_unless_the_program_wants_it(tmp_path):
    program = "import coop, torch\nwith coop.budget('8MiB'): torch.ones(100_000)\n"
    done = run([*PYTHON, "-c", program], tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")


IGNORED = """
import warnings
SILENCE
import coop
with coop.budget("1GiB"): pass
"""


@pytest.mark.parametrize(
    ("silence", "variable", "is_heard"),
    [
        ("import coop; warnings.simplefilter('ignore', coop.SlowdownWarning)", "", True),
        ("import coop; warnings.simplefilter('ignore', coop.IgnoredBudgetWarning)", "", False),
        ("warnings.filterwarnings('ignore', 'coop: the program')", "", False),
        ("", "ignore:coop", False),
    ],
)
def test_warnings_are_silenced(tmp_path, silence, variable, is_heard):
    (tmp_path / "script.py").write_text("import torch\n" + IGNORED.replace("SILENCE", silence))
    command = [*COOP, "run", "-q", "--budget", "1GiB", "script.py"]
    done = run(command, tmp_path, PYTHONWARNINGS=variable)
    assert done.code == 0, done.err
    assert ("IgnoredBudgetWarning" in done.err) == is_heard
    assert bool(done.err) == is_heard


def test_a_budget_that_is_ignored_is_told_where_it_is_the_programs(tmp_path):
    """Where the function is called; it was a line of ours."""
    decorated = "import coop\n@coop.budget('1GiB')\ndef train(): pass\ntrain()\n"
    (tmp_path / "script.py").write_text(decorated)
    done = run([*COOP, "run", "-q", "--budget", "1GiB", "script.py"], tmp_path)
    assert "script.py:4: IgnoredBudgetWarning" in done.err
