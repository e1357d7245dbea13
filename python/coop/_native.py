"""Where what is not Python is: in an installation beside this file, for developers in the build."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).parent
_BUILD = _BESIDE.parents[1] / "build/release"


def library_path() -> str:
    """Of the plugin; where COOP_PLUGIN says, if it does."""
    return _find("COOP_PLUGIN", "libcoop_plugin.so", "src/libcoop_plugin.so")


def simulator_path() -> str:
    """Of the native simulator; where COOP_SIM says, if it does."""
    return _find("COOP_SIM", "coop-sim", "coop-sim")


def _find(variable: str, name: str, name_in_build: str) -> str:
    named = os.environ.get(variable)
    if named:
        return named
    installed, built = _BESIDE / name, _BUILD / name_in_build
    return str(built if built.exists() and not installed.exists() else installed)
