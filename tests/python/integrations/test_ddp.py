"""Two processes by torchrun. `coop run` before and behind it is in cli/test_run_options.py, what
else DDP can be told in plugin/test_processes.py."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from command_line import ROOT, run  # noqa: E402

from examples import assert_same, evictions_in, load  # noqa: E402


@pytest.mark.skipif(not torch.distributed.is_available(), reason="without torch.distributed")
def test_the_same_losses_and_checkpoint(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    twice = Path(__file__).with_name("ddp_twice.py")
    done = run([*torchrun, twice, ROOT / "examples/ddp.py", tmp_path], tmp_path)
    assert done.code == 0, done.err
    losses = [line for line in done.out.splitlines() if "loss" in line]
    assert len(losses) == 12
    assert losses[:6] == losses[6:]
    assert evictions_in(done.out) > 0
    plain, inside = (load(tmp_path / it / "checkpoint.pt") for it in ("plain", "inside"))
    assert_same(inside, plain)
