"""Devices "second:0" and ":1", in the host's memory and with its kernels."""

import os
import sys
import types
from pathlib import Path

import pytest
import torch
from coop import _plugin

# The plugin once more, with these devices in it.
LIBRARY = Path(os.environ["COOP_PLUGIN"]).parents[1] / "tests/libcoop_second_device.so"
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def devices():
    """Only where they are used: pytest reads this file also when it goes through all folders."""
    os.environ["COOP_PLUGIN"] = str(LIBRARY)
    _plugin.load()
    torch.utils.rename_privateuse1_backend("second")
    torch.ops.second.start()
    module = types.ModuleType("torch.second")
    module._is_in_bad_fork = lambda: False
    module.manual_seed_all = torch.ops.second.manual_seed
    module.device_count = lambda: 2
    module.is_available = lambda: True
    module.current_device = lambda: 0
    torch._register_device_module("second", module)


@pytest.fixture(autouse=True)
def nothing_is_left(devices):
    yield
    assert not torch.ops.coop.has_budget()
    assert not torch.ops.coop.is_thread_in_scope()
