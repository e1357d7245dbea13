"""The plugin is for the versions of PyTorch that it is known to be right on."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


def test_it_says_what_it_was_built_for():
    _plugin.load()
    assert torch.__version__.startswith(torch.ops.coop.built_for_torch())
    assert torch.ops.coop.supported_torch() == "2.11 to 2.15"


def test_a_plugin_for_another_pytorch_says_so(tmp_path, monkeypatch):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no compiler: make setup")
    source, library = tmp_path / "plugin.cpp", tmp_path / "plugin.so"
    source.write_text("extern int of_another_version;\nint* p = &of_another_version;\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setenv("COOP_PLUGIN", str(library))
    with pytest.raises(RuntimeError, match=r"was built for another PyTorch.* install coop again"):
        _plugin.load.__wrapped__()


@pytest.mark.parametrize("version", ["2.10.2+cu130", "2.16.0", "3.0.0a0"])
def test_cmake_refuses_other_versions(tmp_path, version):
    if shutil.which("cmake") is None or shutil.which("ninja") is None:
        pytest.skip("cmake or ninja is not installed: make setup")
    package = tmp_path / "site" / "torch"
    header = package / "include/torch/library.h"
    header.parent.mkdir(parents=True)
    header.touch()
    (package / "__init__.py").touch()
    (package / "version.py").write_text(f"__version__ = '{version}'\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    command = ["cmake", "--preset", "plugin", "-B", tmp_path / "build"]
    done = subprocess.run(
        [*command, "-D", f"COOP_PYTHON={python}"], cwd=ROOT, text=True, capture_output=True
    )
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert f"PyTorch {version[: version.index('.', 2)]} in " in said
    assert "coop supports 2.11 to 2.15" in said
