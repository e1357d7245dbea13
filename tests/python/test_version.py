"""The version is written in three places; they agree."""

import re
from pathlib import Path

import coop

ROOT = Path(__file__).resolve().parents[2]


def only_match(pattern: str, file: str) -> str:
    (match,) = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    return match


def test_cmake_agrees():
    assert only_match(r"^project\(coop VERSION (\S+)", "CMakeLists.txt") == coop.__version__


def test_pyproject_agrees():
    assert only_match(r'^version = "(\d[^"]*)"', "pyproject.toml") == coop.__version__
