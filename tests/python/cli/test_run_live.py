"""`coop run --live`, on the screen of a terminal: the program's own output is as it would be."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from dataclasses import replace

import pytest
from command_line import COOP, ROOT, environment, run

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
pyte = pytest.importorskip("pyte", reason="pyte is not installed: make setup")
pytest.importorskip("tqdm", reason="tqdm is not installed: make setup")

from coop.cli.live import Sample, text_of  # noqa: E402

MIB = 1 << 20
COLUMNS, ROWS = 80, 12
LINE = re.compile(
    r"coop [\d.]+ of 12\.0 MiB \| step \d+: [\d.]+ evicted, [\d.]+ recomputed \| [\d.]+% lost"
)

# Trains until it is told that its line was seen: nothing here hangs on how long something takes.
TRAINS = """
import sys
from pathlib import Path
import torch
from torch import nn
from tqdm import tqdm
for number in range(20):
    print("before", number)  # the screen is full, and the cursor in its last row
model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.Tanh())])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with tqdm(total=4, desc="training") as bar:
    while not Path("seen").exists():
        optimizer.zero_grad()
        model(torch.randn(1024, 256)).square().mean().backward()
        optimizer.step()
    for number in range(4):
        tqdm.write(f"after {number}")
        bar.update()
raise ValueError("over")
"""


class Terminal:
    """In which a program runs, and what is on its screen."""

    def __init__(self, command, folder):
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._descriptor = ours
        self._screen = pyte.HistoryScreen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self.program = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(TERM="xterm"),
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(its)

    def is_going_on(self):
        """Shows what came since."""
        assert select.select([self._descriptor], [], [], 100)[0], self.everything()
        try:
            words = os.read(self._descriptor, 1 << 16)
        except OSError:  # the last one has closed it
            words = b""
        self._stream.feed(words)
        return words != b""

    def type(self, words):
        os.write(self._descriptor, words)

    def rows(self):
        return [row.rstrip() for row in self._screen.display]

    def everything(self):
        """With what has scrolled away."""
        above = ("".join(row[x].data for x in range(COLUMNS)) for row in self._screen.history.top)
        return [row.rstrip() for row in above] + self.rows()

    @property
    def is_whole(self):
        return self._screen.margins is None

    def close(self):
        self.program.kill()
        self.program.wait()
        os.close(self._descriptor)


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "train.py").write_text(TRAINS)
    it = Terminal([*COOP, "run", "--budget", "12MiB", "--live", "train.py"], tmp_path)
    yield it
    it.close()


def see_the_line(terminal):
    for _ in range(300):  # pieces of output
        if not terminal.is_going_on() or LINE.fullmatch(terminal.rows()[-1]):
            break
    *above, last = terminal.rows()
    assert LINE.fullmatch(last), terminal.everything()
    assert above[-2] == "before 19"
    assert above[-1].startswith("training:   0%|")
    assert not any("coop" in row for row in above)


def test_the_line_and_the_programs_own(terminal, tmp_path):
    see_the_line(terminal)
    (tmp_path / "seen").touch()
    while terminal.is_going_on():
        pass
    assert terminal.program.wait() == 1
    assert terminal.is_whole
    rows = [row for row in terminal.everything() if row]
    assert rows[:24] == [f"before {i}" for i in range(20)] + [f"after {i}" for i in range(4)]
    bar, *rest = rows[24:]
    assert re.fullmatch(r"training: 100%\|█+\| 4/4 \[.*\]", bar)
    *traceback, budget, _, evicted, _, _ = rest
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: over"
    assert budget == "coop: budget     12.0 MiB on cpu"
    assert int(evicted.split()[2].replace(",", "")) > 0


def test_ctrl_c_gives_the_row_back(terminal):
    see_the_line(terminal)
    terminal.type(b"\x03")
    while terminal.is_going_on():
        pass
    assert terminal.program.wait() == -signal.SIGINT
    assert terminal.is_whole
    rows = [row for row in terminal.everything() if row]
    assert not any(LINE.search(row) for row in rows)
    assert "KeyboardInterrupt" in rows[-6]
    assert [row.split()[1] for row in rows[-5:]] == [
        "budget",
        "peak",
        "evicted",
        "recomputed",
        "cost",
    ]


def test_nothing_where_there_is_no_terminal(tmp_path):
    (tmp_path / "train.py").write_text("import threading, torch\nprint(threading.active_count())")
    done = run([*COOP, "run", "--budget", "12MiB", "--live", "train.py"], tmp_path)
    assert (done.code, done.out) == (0, "1\n")
    assert done.err.splitlines() == done.lines
    assert len(done.lines) == 5


def sample(seconds, steps=0, **counted):
    zeros = dict.fromkeys(("evictions", "recomputations", "recomputing_ns"), 0)
    return Sample(seconds, steps, used_bytes=9 * MIB, budget_bytes=12 * MIB, **{**zeros, **counted})


def test_the_guide_shows_one():
    guide = (ROOT / "docs/guide.md").read_text()
    assert len(LINE.findall(guide)) == 1


def test_what_it_says():
    before = sample(1.0, 10)
    after = sample(3.0, 14, evictions=6, recomputations=48, recomputing_ns=500_000_000)
    assert text_of(sample(9.0, 14), before, after) == (
        "coop 9.0 of 12.0 MiB | step 14: 1.5 evicted, 12 recomputed | 25.0% lost"
    )
    first = sample(3.0, evictions=6)
    assert text_of(first, sample(1.0), first) == (
        "coop 9.0 of 12.0 MiB | 3.0 evicted, 0 recomputed a second | 0.0% lost"
    )
    large = replace(after, budget_bytes=1 << 33)
    assert text_of(large, before, after).startswith("coop 9.0 MiB of 8.0 GiB | step 14: 1.5 ")
