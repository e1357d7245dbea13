"""Two processes by torchrun. `coop run` before and behind it is in cli/test_run_options.py, what
else DDP can be told in plugin/test_processes.py."""

import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from command_line import ROOT, run  # noqa: E402

from examples import assert_same, evictions_in, load  # noqa: E402

BUDGET = "10MiB"

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="without torch.distributed"
)


# Each in processes of its own: a second process group in the same ones hangs now and then, with
# PyTorch alone, too.
# Now and then gloo's threads are still there when a process ends, with plain PyTorch as well.
GLOO_AT_ITS_END = "terminate called without an active exception"


def torchrun(folder, *arguments, processes=2):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    example = [f"--nproc-per-node={processes}", ROOT / "examples/ddp.py"]
    return run([*launcher, *example, "--folder", folder, *arguments], folder.parent)


def train(folder, *arguments):
    done = torchrun(folder, *arguments)
    if done.code != 0 and GLOO_AT_ITS_END in done.err:
        done = torchrun(folder, *arguments)
    assert done.code == 0, done.err
    return [line for line in done.out.splitlines() if "loss" in line], done.out


def assert_same_checkpoint(one, other):
    assert_same(load(one / "checkpoint.pt"), load(other / "checkpoint.pt"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def trained(folder):
    return train(folder / "plain"), train(folder / "inside", "--budget", BUDGET)


def test_the_same_losses_and_checkpoint(trained, folder):
    (wanted, _), (losses, out) = trained
    assert len(wanted) == 6
    assert losses == wanted
    assert evictions_in(out) > 0
    assert_same_checkpoint(folder / "inside", folder / "plain")


def test_checkpoints_are_resumed_inside_and_outside(trained, folder):
    from_plain, from_inside = (folder / name / "checkpoint.pt" for name in ("plain", "inside"))
    wanted, _ = train(folder / "outside", "--resume", from_inside)
    losses, out = train(folder / "again", "--resume", from_plain, "--budget", BUDGET)
    assert losses == wanted != trained[0][0]
    assert evictions_in(out) > 0
    assert_same_checkpoint(folder / "again", folder / "outside")


def test_out_of_memory_ends_in_advice(tmp_path):
    done = torchrun(tmp_path / "none", "--budget", "4MiB", processes=1)
    assert done.code != 0
    assert "What would help:" in done.err
