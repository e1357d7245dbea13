"""The scripts say clearly what is wrong, and change nothing where nothing is missing."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True)


def test_make_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    (targets,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    listed = re.findall(r"^ *make (\S+) +\S", run("make").stdout, re.MULTILINE)
    assert sorted(listed) == sorted(targets.split())


def test_build_installs_what_all_parts_need():
    # It set up a compiler alone: on a new machine simulator, tests and plugin were then left out.
    # Started by a make that said -C, make speaks of folders as well.
    would_run = run("make", "--no-print-directory", "-n", "build").stdout.splitlines()
    assert would_run == ["scripts/setup.sh", "scripts/build.sh release"]


def test_setup_is_silent_where_nothing_is_missing():
    # Not everything: that could rebuild the very .venv this test runs in.
    done = run("scripts/setup.sh", "demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_setup_without_root_names_the_packages(tmp_path: Path):
    # A machine with hardly anything on it, seen by someone who is not root and has no sudo.
    for tool in ("bash", "dirname", "nproc", "apt-get"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "/nowhere")
    fake_id = tmp_path / "id"
    fake_id.write_text("#!/bin/sh\necho 1000\n")
    fake_id.chmod(0o755)
    done = run(str(tmp_path / "bash"), "scripts/setup.sh", "build", path=str(tmp_path))
    assert done.returncode == 1
    assert "neither root nor sudo" in done.stderr
    assert re.search(r"apt-get install .*g\+\+ cmake ninja-build", done.stderr)


def test_unknown_stage_lists_the_stages():
    done = run("scripts/test.sh", "no-such-stage")
    assert done.returncode == 1
    assert "no stage 'no-such-stage'" in done.stderr
    assert "format release asan tsan" in done.stderr
