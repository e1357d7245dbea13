"""A loop of one's own. More of them, unchanged and with checkpoints, are in
tests/python/cli/test_run_scripts.py."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from plain_loop import train  # noqa: E402

from examples import run_example  # noqa: E402


def test_the_same_losses(tmp_path):
    runs = run_example(tmp_path, "plain_loop.py", "11MiB")
    runs.check_words()
    assert runs.plain.out.count("loss ") == 6


def test_out_of_memory_ends_in_advice():
    with coop.budget("2MiB"), pytest.raises(torch.OutOfMemoryError) as caught:
        train(steps=1)
    assert "What would help:\n  - coop.budget(" in str(caught.value)
