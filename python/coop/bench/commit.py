"""What is measured: which commit of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import coop

_ROOT = Path(__file__).parents[3]


def commit_of_this() -> str:
    """The version, if this is not a clone."""
    if not (_ROOT / ".git").exists():
        return coop.__version__
    name = _git("rev-parse", "--short", "HEAD")
    return name + ("-changed" if _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(_ROOT), *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else coop.__version__
