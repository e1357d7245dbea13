"""Two processes by torchrun. `coop run` before and behind it is in cli/test_run_options.py, what
else DDP can be told in plugin/test_processes.py."""

import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from command_line import ROOT, run  # noqa: E402

from examples import assert_same, evictions_in, load  # noqa: E402


# Each in processes of its own: a second process group in the same ones hangs now and then, with
# PyTorch alone, too.
def train(folder, *arguments):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = run([*torchrun, ROOT / "examples/ddp.py", "--folder", folder, *arguments], folder.parent)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.skipif(not torch.distributed.is_available(), reason="without torch.distributed")
def test_the_same_losses_and_checkpoint(tmp_path):
    plain = train(tmp_path / "plain")
    inside = train(tmp_path / "inside", "--budget", "10MiB")
    losses = [line for line in plain.splitlines() if "loss" in line]
    assert len(losses) == 6
    assert losses == [line for line in inside.splitlines() if "loss" in line]
    assert evictions_in(inside) > 0
    assert_same(load(tmp_path / "inside/checkpoint.pt"), load(tmp_path / "plain/checkpoint.pt"))
