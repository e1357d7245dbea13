#!/usr/bin/env python3
"""Runs the commands that the documents show, and writes down what they print.

usage: scripts/refresh_docs.py [--check]

  --check   only say what has changed; exit code 1 if anything has

A command is the first line of a code block, "$ coop-sim ...", "$ coop bench --show ..." or
"$ scripts/...", over several lines where they end in a backslash. What follows it in the block is
its output. Times that were measured differ from run to run: a block in which nothing else has
changed is left as it is. Of the training demo everything is measured: a test runs a tiny one, and
compares the words.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (
    "README.md",
    "docs/simulator.md",
    "docs/forecast.md",
    "docs/moving.md",
    "docs/policies.md",
    "docs/benchmarks.md",
)
PROGRAMS = ROOT / "build/release"
# Drawn by a command of README.md. It shows measured times too, and is renewed when the figures are.
PICTURE = (ROOT / "build/demo/sweep.svg", ROOT / "docs/pictures/sweep.svg")

# All of whose numbers are measured; and what a test runs instead.
MEASURED = {"scripts/demo.sh": "scripts/demo.sh --smoke"}

BLOCK = re.compile(
    r"^```\n\$ (?P<command>(?:coop-sim|coop bench --show|scripts/)(?:[^\n]*\\\n)*[^\n]*)\n"
    r"(?P<output>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SEARCH_TIME_TABLE = re.compile(r"(Search time:[^\n]*\n)(?:  [^\n]+\n)+")
SEARCH_TIME_LINE = re.compile(r"^search time .* in (.* search(?:es)?), .* each$", re.MULTILINE)
SEARCH_TIME_FIELD = re.compile(r'"search_ns": \d+')


@dataclass(frozen=True)
class Shown:
    """A command in a document, and what the document says that it prints."""

    document: str
    command: str
    output: str


def shown_commands(document: str) -> list[Shown]:
    text = (ROOT / document).read_text()
    return [Shown(document, match["command"], match["output"]) for match in BLOCK.finditer(text)]


def words_of(text: str) -> str:
    """Without numbers, and the room that they take."""
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]*\d", "#", text))


def without_timings(text: str) -> str:
    text = SEARCH_TIME_TABLE.sub(r"\1", text)
    text = SEARCH_TIME_LINE.sub(r"\1", text)
    return SEARCH_TIME_FIELD.sub("", text)


def run(command: str, folder: Path) -> str:
    """What the command prints when it is run in this folder."""
    environment = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(ROOT / "python")
    coop = f'coop() {{ "{sys.executable}" -m coop "$@"; }}; '
    shell = ["bash", "-o", "pipefail", "-c", coop + command]
    done = subprocess.run(shell, cwd=folder, env=environment, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"$ {command}\nfailed with exit code {done.returncode}:\n{done.stderr}")
    return done.stdout


def run_aside(command: str) -> str:
    """The same in a folder that looks like the repository: pictures that it draws are not kept."""
    if command in MEASURED:
        return run(MEASURED[command], ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("bench", "build", "scripts", "tests"):
            (folder / part).symlink_to(ROOT / part)
        (folder / "docs/pictures").mkdir(parents=True)
        return run(command, folder)


def difference(shown: Shown, printed: str) -> str:
    """How the output differs from what is shown; empty if it does not, times aside."""
    if shown.command in MEASURED and words_of(shown.output) == words_of(printed):
        return ""
    old, new = without_timings(shown.output), without_timings(printed)
    lines = difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), f"{shown.document} shows", f"$ {shown.command}"
    )
    return "".join(lines)


def refresh(document: str) -> bool:
    """Writes the document again where it has changed; whether it has."""
    path = ROOT / document
    old = path.read_text()

    def renewed(match: re.Match[str]) -> str:
        shown = Shown(document, match["command"], match["output"])
        printed = run(shown.command, ROOT)
        return f"```\n$ {shown.command}\n{printed}```" if difference(shown, printed) else match[0]

    new = BLOCK.sub(renewed, old)
    if new != old:
        path.write_text(new)
    return new != old


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say what has changed")
    if parser.parse_args().check:
        shown = [each for document in DOCUMENTS for each in shown_commands(document)]
        found = [difference(each, run_aside(each.command)) for each in shown]
        sys.exit("".join(found) or 0)
    for document in DOCUMENTS:
        has_changed = refresh(document)
        print(f"{document}: {'changed' if has_changed else 'as it was'}")
        if has_changed and document == "README.md":
            shutil.copy(*PICTURE)


if __name__ == "__main__":
    main()
