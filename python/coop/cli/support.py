"""What is known of coop together with what else there is for PyTorch.

Nothing is said to work that no test has shown: each of the first three kinds names its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

WORKS = "works (tested)"
PASSES = "passes through unevicted"
REFUSED = "refused by name"
UNKNOWN = "not tested"


@dataclass(frozen=True)
class Support:
    what: str
    state: str
    says: str
    test: str | None = None
    """file::function below tests/python; None: there is none."""
    package: str | None = None
    """By its name on PyPI."""

    @property
    def installed(self) -> str | None:
        """Which version there is here."""
        try:
            return metadata.version(self.package) if self.package else None
        except metadata.PackageNotFoundError:
            return None


def _plugin(test: str) -> str:
    return f"plugin/{test}"


TABLE = (
    Support(
        "DDP over gloo",
        WORKS,
        "what collectives use stays put",
        _plugin("test_processes.py::test_two_processes_train_over_gloo"),
    ),
    Support(
        "DataLoader workers",
        WORKS,
        "they have ordinary memory",
        _plugin("test_processes.py::test_data_from_workers"),
    ),
    Support(
        "checkpoint, autocast",
        WORKS,
        "like any other program",
        _plugin("test_programs.py::test_budget"),
    ),
    Support(
        "torch.compile",
        PASSES,
        "each graph is one operator",
        _plugin("test_compiled.py::test_a_compiled_part_is_trained"),
    ),
    Support(
        "custom operators",
        PASSES,
        "unless declared: coop.register",
        _plugin("test_register.py::test_an_unknown_one_is_kept_and_the_program_is_told_once"),
    ),
    Support(
        "CUDA graphs",
        REFUSED,
        "capture before the budget begins",
        "gpu/test_gpu_budget.py::test_no_graph_is_captured_inside",
    ),
    Support("NCCL", UNKNOWN, "one GPU for each process"),
    Support("FSDP", UNKNOWN, "it empties storages by itself"),
    Support("DeepSpeed", UNKNOWN, "as FSDP", package="deepspeed"),
    Support("bitsandbytes", UNKNOWN, "if it is operators: as those", package="bitsandbytes"),
    Support("flash-attn", UNKNOWN, "if it is operators: as those", package="flash-attn"),
    Support("xformers", UNKNOWN, "if it is operators: as those", package="xformers"),
    Support("Triton kernels", UNKNOWN, "they take addresses, unseen", package="triton"),
)
