"""Every program, at ease now and then."""

import os
import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402
from programs import PROGRAMS, differences, run  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

# cuDNN takes workspaces of tens of MiB for a small recurrent network.
ENOUGH = (64 if os.environ["COOP_DEVICE"] == "cpu" else 256) << 20
ops = torch.ops.coop


class Restless(TorchFunctionMode):
    """At ease or not, as it happens, forwards and backwards."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed
        self.draw = random.Random(seed)
        self.count = 0

    def toggle(self, _=None):
        if self.draw.random() < 0.8:
            return
        with torch._C._DisableTorchDispatch():  # a program's own modes need not know
            if not ops.has_budget():
                return
            if self.draw.random() < 0.5:
                self.count += ops.begin_ease()
            else:
                ops.end_ease()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():
            self.toggle()
            is_new = type(result) is torch.Tensor and result.requires_grad and not result._is_view()
            if is_new and not result.is_leaf and self.draw.random() < 0.1:
                result.register_hook(self.toggle)
        return result


def run_compiled_anew(name, mode, budget):
    """After some changes of what it depends on, a mode for one, code is no longer compiled, and its
    numbers are others."""
    torch._dynamo.reset()
    with mode:
        return run(PROGRAMS[name], mode.seed, budget)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("little_to_compile", "deterministic")
def test_programs_at_ease_now_and_then(name):
    """In between, everything is evicted after every operator."""
    if reason := PROGRAMS[name].skip():
        pytest.skip(reason)
    if name == "operators_that_take_functions":
        pytest.skip("PyTorch compiles what such operators are given, and no mode of ours with it")
    _plugin.load()
    seed = int(os.environ.get("COOP_TEST_SEED", "1"))
    print("seed", seed)
    try:
        wanted = run_compiled_anew(name, Restless(seed), None)
    except RuntimeError as error:
        if os.environ["COOP_DEVICE"] == "cpu":
            raise
        pytest.skip(f"plain PyTorch does not run it on a GPU: {str(error).splitlines()[0]}")
    mode = Restless(seed)
    made = run_compiled_anew(name, mode, _plugin.budget(ENOUGH, stress=True, small_limit=256))
    assert not differences(wanted, made)
    assert mode.count > 0
