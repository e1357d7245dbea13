"""What tests of the native command share; and for all, a processor that is not what it says."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Another build of it, such as one with sanitizers, is tested with COOP_SIM=build/asan/coop-sim.
COOP_SIM = Path(os.environ.get("COOP_SIM", ROOT / "build/release/coop-sim")).resolve()


# Of bfloat16 as PyTorch has it, without coop.
_IN_BFLOAT16 = "import torch; a = torch.ones(32, 32, dtype=torch.bfloat16); a @ a"


def pytest_configure(config) -> None:
    """Some virtual machines claim to have matrix units (AMX) and end whoever uses them with SIGILL.
    PyTorch's kernels are told to do without, before a test imports it."""
    is_claimed = "amx_bf16" in Path("/proc/cpuinfo").read_text()
    if not is_claimed or "ONEDNN_MAX_CPU_ISA" in os.environ:
        return
    tried = subprocess.run([sys.executable, "-c", _IN_BFLOAT16], capture_output=True)
    if tried.returncode == -signal.SIGILL:
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"


class CoopSim:
    """Runs coop-sim in the repository's root."""

    program = COOP_SIM

    def run(self, *arguments) -> subprocess.CompletedProcess[str]:
        command = [COOP_SIM, *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, text=True, capture_output=True)

    def text(self, *arguments) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr  # a slow sweep may say how far it is
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.text(*arguments, "--json"))

    def refuses(self, *arguments) -> str:
        """What it says when it does nothing but complain."""
        done = self.run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("coop-sim: error: ")
        return done.stderr.removeprefix("coop-sim: error: ")


@pytest.fixture(scope="session")
def coop_sim() -> CoopSim:
    assert COOP_SIM.exists(), "coop-sim is not built: make build"
    return CoopSim()


@pytest.fixture(scope="session")
def small_trace(coop_sim, tmp_path_factory) -> Path:
    """A network small enough to be run many times, with steps, remarks and workspaces."""
    path = tmp_path_factory.mktemp("traces") / "small.trace"
    coop_sim.text("make", "residual", "--seed", 3, "--steps", 2, "--layers", 4, "-o", path)
    return path
