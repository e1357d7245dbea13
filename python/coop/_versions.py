"""The versions of PyTorch that there can be a native library for; without importing it."""

from __future__ import annotations

from importlib import metadata, util

_OLDEST, _NEWEST = (2, 11), (2, 15)  # a test compares them with src/plugin/torch_version.hpp

_TORCH = f"'torch>=2.{_OLDEST[1]},<2.{_NEWEST[1] + 1}'"
INSTALL_TORCH = f"pip install {_TORCH}, then install coop again"
NO_TORCH = f"coop: PyTorch is not installed here: {INSTALL_TORCH}"


def check_version(version: str) -> None:
    major, minor = (int(part) for part in version.split(".")[:2])
    if not _OLDEST <= (major, minor) <= _NEWEST:
        supported = " to ".join(".".join(map(str, each)) for each in (_OLDEST, _NEWEST))
        raise RuntimeError(
            f"coop works with PyTorch {supported}, and this is {version}: it stands where PyTorch "
            f"promises nothing, and starts only where that has been tried: {INSTALL_TORCH}"
        )


def check_installed_torch() -> None:
    """Without importing it, which takes seconds."""
    if util.find_spec("torch") is None:
        raise RuntimeError(NO_TORCH)
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return  # built from source, perhaps: it says so itself when it is imported
    check_version(version)
