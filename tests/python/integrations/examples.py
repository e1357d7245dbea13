"""Runs an example three times, and compares what it says and leaves.

With PyTorch alone and with a budget of its own it runs in this process, which has its framework
imported; unchanged under `coop run` in one of its own.
"""

import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
import torch
from command_line import COOP, ROOT, Done, run


@dataclass(frozen=True)
class Said:
    out: str
    err: str


@dataclass(frozen=True)
class Runs:
    plain: Said
    inside: Said
    """A budget of its own, or a callback."""
    under: Done
    """`coop run`."""
    folder: Path

    def folders(self) -> list[Path]:
        """What each of them has left."""
        return [self.folder / name / "trained" for name in ("plain", "inside", "under")]

    def check_evictions(self) -> None:
        assert evictions_in(self.inside.out) > 0
        assert self.under.evicted > 0

    def check_words(self) -> None:
        """The same from all three, and then what there is to say of the budget."""
        assert self.under.out == self.plain.out != ""
        assert self.inside.out.startswith(self.plain.out + "budget ")


def evictions_in(stats: str) -> int:
    """As they are printed."""
    (line,) = [line for line in stats.splitlines() if line.startswith("evictions ")]
    return int(line.split()[1].replace(",", ""))


def run_here(folder: Path, name: str, *arguments: str) -> Said:
    folder.mkdir()
    example = str(ROOT / "examples" / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", [example, *arguments])
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            runpy.run_path(example, run_name="__main__")
    return Said(out.getvalue(), err.getvalue())


def run_example(folder: Path, name: str, budget: str, launcher: tuple[str, ...] = ()) -> Runs:
    plain = run_here(folder / "plain", name)
    inside = run_here(folder / "inside", name, "--budget", budget)
    (folder / "under").mkdir()
    command = [*COOP, "run", "--budget", budget, *launcher, str(ROOT / "examples" / name)]
    under = run(command, folder / "under")
    assert under.code == 0, under.err
    runs = Runs(plain, inside, under, folder)
    runs.check_evictions()
    return runs


def assert_same(a: object, b: object) -> None:
    """Bit for bit, whatever is inside."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif hasattr(a, "tobytes"):
        assert a.tobytes() == b.tobytes()
    else:
        assert a == b


def load(path: Path) -> object:
    return torch.load(path, weights_only=False)
