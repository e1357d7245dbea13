"""Scripts that a user might have, unchanged, in a budget that binds: the same files, each byte."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from command_line import COOP, PYTHON, folder_of_scripts, run, run_both

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

SCRIPTS = {
    "argparse": ("14MiB", "with_argparse.py", "--steps", "3", "--budget", "none"),
    "main": ("15MiB", "with_main.py", "one", "--two", "--", "-m"),
    "workers": ("15MiB", "with_workers.py"),
    "config": ("19MiB", "with_config.py"),
    "package": ("15MiB", "-m", "trainer", "weights.pt", "-q"),
    "out of memory": ("14MiB", "catches_out_of_memory.py"),
    "fork": ("14MiB", "forks.py"),
    "logging": ("15MiB", "with_logging.py"),
}
ENDS_WITH = {"main": 3, "fork": 5}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_files(tmp_path, name):
    budget, *command = SCRIPTS[name]
    plain, coop = run_both(tmp_path, budget, *command)
    assert plain.code == ENDS_WITH.get(name, 0), plain.err
    assert (coop.code, coop.out) == (plain.code, plain.out), coop.err
    assert coop.files == plain.files
    assert coop.evicted > 0
    ours = "".join(f"{line}\n" for line in coop.lines)
    assert coop.err == plain.err + ours  # five lines, and nothing else
    words = [line.split()[1] for line in coop.lines]
    assert words == ["budget", "peak", "evicted", "recomputed", "cost"]


def test_checkpoints_are_resumed_in_another_budget_and_without(tmp_path):
    mixed = ["16MiB", None, "18MiB"]  # of a step each
    with ThreadPoolExecutor() as pool:
        plain = pool.submit(train_and_resume, tmp_path, "plain", [None] * len(mixed))
        coop = pool.submit(train_and_resume, tmp_path, "mixed", mixed)
    assert "checkpoint.pt" in plain.result()
    assert coop.result() == plain.result()


def train_and_resume(parent, name, budgets):
    """The files at the end."""
    folder = folder_of_scripts(parent, name)
    for last_step, budget in enumerate(budgets, 1):
        start = [*COOP, "run", "--budget", budget] if budget else PYTHON
        done = run([*start, "with_checkpoints.py", last_step], folder)
        assert done.code == 0, done.err
        assert not budget or done.evicted > 0
    return done.files
