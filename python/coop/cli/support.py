"""What is known of coop together with what else there is for PyTorch.

Nothing is said that no test has shown: each names its own. Where the other one takes a GPU, that is
a test of the way by which it gets at tensors: operators, collectives, addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

WORKS = "works (tested)"
PASSES = "passes through unevicted"
REFUSED = "refused by name"


@dataclass(frozen=True)
class Support:
    what: str
    state: str
    says: str
    test: str
    """file::function below tests/python."""
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


def _integration(test: str) -> str:
    return f"integrations/{test}"


_UNKNOWN_OPERATOR = _plugin(
    "test_register.py::test_an_unknown_one_is_kept_and_the_program_is_told_once"
)

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
        "HF Trainer",
        WORKS,
        "a callback, or coop run",
        _integration("test_transformers.py::test_the_same_losses_and_checkpoints"),
        package="transformers",
    ),
    Support(
        "Lightning",
        WORKS,
        "a callback, or coop run",
        _integration("test_lightning.py::test_the_same_losses_and_checkpoints"),
        package="lightning",
    ),
    Support(
        "Accelerate",
        WORKS,
        "and accelerate launch",
        _integration("test_accelerate.py::test_the_same_losses"),
        package="accelerate",
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
        _UNKNOWN_OPERATOR,
    ),
    Support(
        "CUDA graphs",
        PASSES,
        "what a graph uses stays; its own memory counts",
        "gpu/test_gpu_graphs.py::test_a_captured_step_trains_as_without",
    ),
    Support(
        "NCCL",
        PASSES,
        "as gloo's; itself not tried",
        _plugin("test_processes.py::test_what_a_collective_writes_later_stays_in_place"),
    ),
    Support(
        "FSDP",
        PASSES,
        "what its layers make stays",
        _plugin("test_together_with.py::test_sharded_parameters_over_gloo"),
    ),
    Support(
        "DeepSpeed",
        PASSES,
        "ZeRO with torch.optim's",
        _plugin("test_together_with.py::test_zero_of_deepspeed"),
        package="deepspeed",
    ),
    Support(
        "bitsandbytes",
        PASSES,
        "what it is given stays put",
        _plugin("test_together_with.py::test_a_library_that_is_given_addresses"),
        package="bitsandbytes",
    ),
    Support("flash-attn", PASSES, "its operators: as custom ones", _UNKNOWN_OPERATOR, "flash-attn"),
    Support("xformers", PASSES, "its operators: as custom ones", _UNKNOWN_OPERATOR, "xformers"),
    Support(
        "Triton kernels",
        PASSES,
        "what they are given stays put",
        _plugin("test_together_with.py::test_a_triton_kernel"),
        package="triton",
    ),
)
