"""A loop of one's own. More of them, unchanged, are in tests/python/cli/test_run_scripts.py."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from examples import run_example


def test_the_same_losses(tmp_path):
    runs = run_example(tmp_path, "plain_loop.py", "11MiB")
    runs.check_words()
    assert runs.plain.out.count("loss ") == 6
