"""What networks are trained on."""

from __future__ import annotations

import gc
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

Mark = Any
"""Seconds that the processor gave this process, or an event of a GPU."""

_LEFT_OVER = 64 << 20  # bytes that CUDA's libraries may keep
_PROCESSOR = "the processor's time of "


@dataclass(frozen=True)
class Machine:
    device: str

    @property
    def has_gpu(self) -> bool:
        return self.device == "cuda"

    def prepare(self) -> None:
        """As people train: in TF32, where there is such a thing."""
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True

    def wait(self) -> None:
        if self.has_gpu:
            torch.cuda.synchronize()

    def mark(self) -> Mark:
        """A moment of what the device does, for which nobody waits now. Of a CPU, what this process
        had of it: others may be at work there."""
        if not self.has_gpu:
            return time.process_time()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, began: Mark, ended: Mark) -> float:
        if not self.has_gpu:
            return ended - began
        ended.synchronize()
        return began.elapsed_time(ended) / 1e3

    def forget(self) -> None:
        """What earlier runs have left."""
        gc.collect()
        if self.has_gpu:
            torch._C._cuda_clearCublasWorkspaces()  # it keeps them for ever
            torch.cuda.empty_cache()
            self.reset_peaks()

    def reset_peaks(self) -> None:
        if self.has_gpu:
            torch.cuda.reset_peak_memory_stats()

    def peaks(self) -> tuple[int | None, int | None]:
        """Bytes allocated and reserved. PyTorch does not count those of a CPU."""
        if not self.has_gpu:
            return None, None
        return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()

    def is_clean(self) -> bool:
        """Whether the next can begin as if nothing had been, failures included."""
        try:
            self.wait()
            self.forget()
            return not self.has_gpu or torch.cuda.memory_allocated() < _LEFT_OVER
        except RuntimeError:
            return False

    def facts(self) -> dict[str, str]:
        count = torch.get_num_threads()
        threads = f"{count} thread{'' if count == 1 else 's'} of {_cpu()}"
        return {
            "device_name": torch.cuda.get_device_name() if self.has_gpu else _PROCESSOR + threads,
            "torch": torch.__version__,
            "python": platform.python_version(),
        }


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else f"{os.cpu_count()} processors"
