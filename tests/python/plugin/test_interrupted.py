"""Ctrl-C and errors of the program's own, at any point: everything goes on as without coop."""

import gc
import itertools
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from coop import _plugin  # noqa: E402
from programs import Outcome, differences  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd.graph import saved_tensors_hooks  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_is_left():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    gc.collect()
    assert torch.ops.coop.pools() == 0


class Alarm:
    """Goes off once, at the call with this number."""

    def __init__(self, number: int, error: type[BaseException]) -> None:
        self.left = number
        self.error = error

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if self.left != -1:
            return
        if self.error is KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
        else:
            raise self.error("the program's own")


class Square(torch.autograd.Function):
    alarm: Callable = staticmethod(lambda: None)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        made = gradient * x
        Square.alarm()
        return made * 2


class Squared(nn.Module):
    def forward(self, x):
        return Square.apply(x)


def build():
    layers = [it for _ in range(3) for it in (nn.Linear(48, 48), nn.Dropout(0.1), nn.Tanh())]
    return nn.Sequential(*layers, nn.BatchNorm1d(48), nn.ReLU(), Squared())


def forward_hook(model, alarm):
    for it in model:
        it.register_forward_hook(alarm)


def backward_hook(model, alarm):
    for it in model:
        it.register_full_backward_hook(alarm)


def gradient_hook(model, alarm):
    for it in model.parameters():
        it.register_hook(alarm)


def accumulated_hook(model, alarm):
    for it in model.parameters():
        it.register_post_accumulate_grad_hook(alarm)


def optimizer_hook(model, alarm):
    model.optimizer.register_step_post_hook(alarm)


def own_function(model, alarm):
    Square.alarm = staticmethod(alarm)


def packing(model, alarm):
    # Detached: what is saved must not hold its own history, which nobody would ever drop.
    model.hooks = saved_tensors_hooks(lambda x: (alarm(), x.detach())[1], lambda x: x)


def unpacking(model, alarm):
    model.hooks = saved_tensors_hooks(lambda x: x.detach(), lambda x: (alarm(), x)[1])


PLACES = [
    forward_hook,
    backward_hook,
    gradient_hook,
    accumulated_hook,
    optimizer_hook,
    own_function,
    packing,
    unpacking,
]


def run(place, number, error, scope=None):
    outcome, losses, errors = Outcome(), [], 0
    torch.manual_seed(11)
    model = build()
    model.optimizer = optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.hooks = nullcontext()
    place(model, Alarm(number, error))

    def step():
        x = torch.randn(256, 48)
        optimizer.zero_grad()
        with model.hooks:
            loss = (model(x) - x.cos()).square().mean()
            loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    def steps():
        nonlocal errors
        for _ in range(4):
            try:
                step()
            except (KeyboardInterrupt, ValueError):
                errors += 1

    try:
        if scope is None:
            steps()
        else:
            with scope:
                steps()
                torch.ops.coop.validate()
                outcome.stats = _plugin.stats()
    finally:
        Square.alarm = staticmethod(lambda: None)
    assert errors == 1
    outcome.keep("losses", losses)
    outcome.keep_model("model", model)
    outcome.keep("optimizer", optimizer.state_dict())
    outcome.keep("random state", torch.get_rng_state())
    return outcome


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("place", PLACES, ids=[it.__name__ for it in PLACES])
def test_goes_on_as_without_coop(place, number, error):
    plain = run(place, number, error)
    for scope in (
        _plugin.budget(16 * MIB, stress=True, small_limit=0),
        _plugin.budget(640 * KIB, small_limit=4 * KIB),
    ):
        ours = run(place, number, error, scope)
        assert not differences(plain, ours)
        assert ours.stats["replays"] > 0


@pytest.mark.filterwarnings("ignore::coop.UnknownOperatorWarning")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_while_an_operator_is_run_again(error):
    alarm = Alarm(2, error)  # twice for the program, then when one is run again

    @torch.library.custom_op("coop_interrupted::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        alarm()
        return x * 2

    coop.register(torch.ops.coop_interrupted.twice)
    with _plugin.budget(MIB, stress=True, small_limit=0):
        x = torch.arange(1000.0)
        y, z = twice(x), twice(x + 1)
        torch.manual_seed(5)
        state = torch.get_rng_state()
        with pytest.raises(error):
            _ = y + z
        assert torch.equal(torch.get_rng_state(), state)
        torch.ops.coop.validate()
        assert torch.equal(y + z, torch.arange(1000.0) * 4 + 2)
        del x, y, z, state
        assert _plugin.stats()["held_bytes"] == 0


OWN = ("coop/_budget.py", "coop/_recording.py", "coop/_ctrl_c.py")


class Pressed:
    """Ctrl-C, when so many lines of coop's own have begun to run."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __enter__(self) -> "Pressed":
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def trace(self, frame, event, _):
        if not frame.f_code.co_filename.endswith(OWN):
            return None
        if event == "line" and not is_first_line_of_exit(frame):
            self.left -= 1
            if self.left == 0:
                self.at = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return self.trace


def is_first_line_of_exit(frame):
    """There Python has not yet come to what could be made to wait."""
    code = frame.f_code
    return code.co_name == "__exit__" and frame.f_lineno == next(
        line for _, _, line in code.co_lines() if line and line > code.co_firstlineno
    )


@pytest.mark.parametrize("is_recorded", [False, True], ids=["budget", "recording"])
def test_while_a_scope_begins_or_ends(is_recorded, tmp_path):
    """It begins and ends whole, or not at all; the next one is as if nothing had been."""
    path = tmp_path / "step.coop"

    def scope():
        return coop.record(path) if is_recorded else coop.budget("16MiB")

    with scope():
        pass
    for number in itertools.count(1):
        pressed, made = Pressed(number), None
        if is_recorded:
            path.write_text("an earlier one")
        try:
            with pressed, scope():
                made = torch.arange(100_000.0) * 2
        except KeyboardInterrupt:
            pass
        assert not torch.ops.coop.has_budget(), pressed.at
        assert made is None or torch.equal(made, torch.arange(100_000.0) * 2)
        if is_recorded and made is None:  # it did not begin
            assert path.read_text() == "an earlier one", pressed.at
        if pressed.left > 0:
            break
    assert number > 50
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_is_held_by_what_ended_a_scope():
    """A pass that failed leaves its graph in a queue of PyTorch's."""

    def fail(batch, number):
        weight = torch.randn(100, 100).requires_grad_()
        x = torch.randn(batch, 100)
        for _ in range(8):
            x = (x @ weight).tanh() + (x @ weight).sin()  # more than one way back
        x.register_hook(Alarm(number, ValueError))
        x.sum().backward()

    for batch, number in ((100, 0), (100, 100), (1000, 100)):
        try:
            with _plugin.budget(1 * MIB, small_limit=4 * KIB):
                fail(batch, number)
        except (ValueError, coop.OutOfMemory):
            pass
        gc.collect()
        assert torch.ops.coop.pools() == 0, (batch, number)
