"""Runs the command in processes of its own, as a user would, and Python beside it."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = Path(__file__).with_name("scripts")
PYTHON = [sys.executable]
COOP = [sys.executable, "-m", "coop"]


def environment(**more: str) -> dict[str, str]:
    """One thread: tensors are small, and machines busy."""
    ours = {
        "PYTHONPATH": str(ROOT / "python"),
        "COOP_PLUGIN": str(ROOT / "build/release/src/libcoop_plugin.so"),
        "COOP_DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
    }
    return {**os.environ, **ours, **more}


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    files: dict[str, bytes]
    """What lies in the folder afterwards, the folder's own name aside."""

    @property
    def lines(self) -> list[str]:
        """Of ours, at the end."""
        return [line for line in self.err.splitlines() if line.startswith("coop")]

    @property
    def evicted(self) -> int:
        (line,) = [line for line in self.lines if "evicted" in line]
        return int(line.split()[2].replace(",", ""))


def run(command: list, folder: Path, **more: str) -> Done:
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Done(done.returncode, done.stdout, done.stderr, files_of(folder))


def files_of(folder: Path) -> dict[str, bytes]:
    here = str(folder).encode()
    return {
        str(path.relative_to(folder)): path.read_bytes().replace(here, b"FOLDER")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def folder_of_scripts(parent: Path, name: str) -> Path:
    return Path(shutil.copytree(SCRIPTS, parent / name, ignore=lambda *_: ["__pycache__"]))


def run_both(parent: Path, budget: str, *command: str) -> tuple[Done, Done]:
    """Python alone and `coop run`, each in a folder of its own, at the same time."""
    commands = {"plain": PYTHON, "coop": [*COOP, "run", "--budget", budget]}
    with ThreadPoolExecutor() as pool:
        done = [
            pool.submit(run, [*start, *command], folder_of_scripts(parent, name))
            for name, start in commands.items()
        ]
    return done[0].result(), done[1].result()
