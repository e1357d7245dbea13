"""A budget: a number of bytes for everything that happens inside."""

from __future__ import annotations

import inspect
import math
import operator
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

import torch

# By the time that a program names coop.OutOfMemory there may be no memory to import it with.
from coop import _out_of_memory, _plugin  # noqa: F401
from coop._compiled import compiled_graphs_are_seen
from coop._ctrl_c import ctrl_c_waits
from coop._graphs import graphs_are_seen
from coop._higher_order import higher_order_operators_pass
from coop._log import log
from coop._profiler import profiler_is_served
from coop._raw_access import raw_access_is_seen
from coop._shared import Shared
from coop._stats import log_stats
from coop._text import as_bytes
from coop._threads import threads_inherit
from coop._warnings import warn_of_ignored

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_SMALL_LIMIT = 64 << 10  # tensors of up to this many bytes are never evicted
_PACE_WINDOW = 5.0  # seconds of operators, before anything is said of how slow they are


class budget:  # noqa: N801
    """Run what is inside in this many bytes, what was there before included.

        with coop.budget("8GiB"):
            train()

        @coop.budget("50%")
        def train_step(batch): ...

        with coop.budget({"cuda:0": "8GiB", "cuda:1": "6GiB"}):
            train()

    size: "8GiB", "512MB", "50%" of the device's memory, or a number of bytes. For several devices,
        a dict from device to that.
    device: which memory, "cuda" or "cpu"; the GPU's if there is one.
    policy: what decides which tensors go.
    stress: after every operator, evict all that may be evicted. Any program is a test then.
    verify: compare every byte of what is recomputed with what was evicted, not only a sample.
    audit: evict nothing; run every operator again at once and raise at the end if any is not what
        it is taken for. For operators of your own (`coop.register`). All that is inside must fit.
    max_slowdown: raise coop.OutOfMemory when recomputing makes the program more than this many
        times slower than it is without a budget, over some seconds. Without it, a warning is all.

    Wrong arguments are refused here, before anything begins. One device has one budget at a time;
    several devices have one each, one inside the other.
    """

    def __init__(
        self,
        size: int | str | Mapping[torch.device | str, int | str],
        *,
        device: torch.device | str | None = None,
        policy: str = "coop",
        stress: bool = False,
        verify: bool = False,
        audit: bool = False,
        max_slowdown: float | None = None,
    ) -> None:
        self._sizes = _sizes(size, device)
        self.device = next(iter(self._sizes))  # the first
        self.bytes = sum(self._sizes.values())
        torch.ops.coop.check_policy(policy)
        self.policy = policy
        self.stress = bool(stress)
        self.verify = bool(verify)
        self.audit = bool(audit)
        if self.audit and any(it.type != "cpu" for it in self._sizes):
            raise ValueError("coop: an audit looks at operators on the CPU: use device='cpu'")
        self.max_slowdown = _check_slowdown(max_slowdown)
        self._small_limit = _SMALL_LIMIT
        self._pace_window = _PACE_WINDOW
        self._scope: ExitStack | None = None

    def __enter__(self) -> budget:
        _plugin.start()
        scope = None
        try:
            with ctrl_c_waits():
                scope = self._scope = self._begin()
            return self
        except BaseException:
            if scope is not None:  # Ctrl-C: nobody will leave what has begun
                self._end()
            raise

    def _begin(self) -> ExitStack:
        with ExitStack() as stack:
            for device, nbytes in self._sizes.items():
                around = _around_the_program
                if around is not None and device in around._sizes:
                    warn_of_ignored(nbytes, around._sizes[device])
                else:
                    self._begin_on(device, nbytes, stack)
            return stack.pop_all()

    def _begin_on(self, device: torch.device, nbytes: int, stack: ExitStack) -> None:
        options = (self.stress, self.verify, self.audit, self._small_limit, self.policy)
        pace = (self.max_slowdown or 0.0, self._pace_window)
        if device.type == "cuda":
            # cuBLAS keeps its workspaces for ever. Those from before are given back, so that
            # what it takes now counts; what it takes inside must not keep the pool alive.
            torch._C._cuda_clearCublasWorkspaces()
            stack.callback(torch._C._cuda_clearCublasWorkspaces)
        torch.ops.coop.enter(nbytes, device, *options, *pace)
        stack.callback(_leave, device)
        log.info("%r begins: %s", self, as_bytes(nbytes))
        stack.enter_context(_for_all.used())
        if device.type == "cuda":
            stack.enter_context(_for_gpus.used())

    def _end(self) -> None:
        with ctrl_c_waits():
            assert self._scope is not None
            scope, self._scope = self._scope, None
            scope.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._end()
        except torch.OutOfMemoryError as at_the_end:
            # What has ended the scope is what the program is to see.
            if error is None:
                raise
            if hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(str(at_the_end))
        finally:
            if self._scope is not None:  # Ctrl-C, before it was made to wait
                self._end()

    def __call__(self, function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        if not callable(function) or _runs_later(function):
            raise TypeError(
                f"coop: the body of {function!r} would run when the budget is over; write "
                f"`with coop.budget(...)` inside it"
            )

        @wraps(function)
        def inside(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            with self:
                return function(*args, **kwargs)

        return inside

    def __repr__(self) -> str:
        if len(self._sizes) == 1:
            what = f"{self.bytes}, device={str(self.device)!r}"
        else:
            what = repr({str(device): nbytes for device, nbytes in self._sizes.items()})
        return f"coop.budget({what}, policy={self.policy!r})"


# What is put in other places of PyTorch's and Python's: once, for all budgets.
_for_all = Shared(
    raw_access_is_seen,
    compiled_graphs_are_seen,
    higher_order_operators_pass,
    profiler_is_served,
    threads_inherit,
)
_for_gpus = Shared(graphs_are_seen)


def _leave(device: torch.device) -> None:
    try:
        torch.ops.coop.leave(device)
    finally:
        log_stats("ends", device)


_around_the_program: budget | None = None


def put_around_the_program(outer: budget) -> None:
    """`coop run` does. It is never left, and those inside it for the same device are ignored."""
    global _around_the_program
    outer.__enter__()
    _around_the_program = outer


def _runs_later(function: Callable) -> bool:
    kinds = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    return any(is_kind(function) for is_kind in kinds)


def _sizes(
    size: int | str | Mapping[torch.device | str, int | str], device: torch.device | str | None
) -> dict[torch.device, int]:
    """In bytes, by device."""
    each = {device: size} if not isinstance(size, Mapping) else size
    if isinstance(size, Mapping) and device is not None:
        raise TypeError("coop: a budget for several devices names them all: leave out device=")
    if not each:
        raise ValueError("coop: a budget for no device: write for example {'cuda:0': '8GiB'}")
    chosen = {choose_device(name): one for name, one in each.items()}
    if len(chosen) < len(each):
        raise ValueError("coop: a device is named twice, and has one budget")
    _plugin.load()
    return {it: torch.ops.coop.size_of_budget(_as_text(one), it) for it, one in chosen.items()}


def _as_text(size: int | str) -> str:
    if isinstance(size, str):
        return size
    try:
        if isinstance(size, bool):
            raise TypeError
        number = operator.index(size)
    except TypeError:
        raise TypeError(
            f"coop: a budget is a whole number of bytes or a text like '8GiB', '512MB' or '50%', "
            f"not {size!r}"
        ) from None
    if number <= 0:
        raise ValueError(f"coop: a budget is a positive number of bytes, not {number}")
    return str(number)


def _check_slowdown(times: float | None) -> float | None:
    if times is None:
        return None
    if isinstance(times, bool) or not isinstance(times, int | float) or not 1 < times < math.inf:
        raise ValueError(
            f"coop: max_slowdown is how many times slower a program may get, a number above 1 "
            f"like 2.5, not {times!r}"
        )
    return float(times)


def choose_device(device: torch.device | str | None) -> torch.device:
    if device is None:
        device = os.environ.get("COOP_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"coop: there is no device {device!r}; there are 'cpu', 'cuda'") from error
    if chosen.type == "cpu":
        return torch.device("cpu")
    if chosen.type != "cuda":
        raise ValueError(
            f"coop: budgets are for 'cpu' and 'cuda'; there is none for {chosen.type!r}"
        )
    if not torch.cuda.is_available():
        raise ValueError(
            "coop: PyTorch sees no GPU here (torch.cuda.is_available() is False); "
            "device='cpu' (coop run --device cpu) has a budget for the host's memory"
        )
    torch.cuda.init()
    index = torch.cuda.current_device() if chosen.index is None else chosen.index
    if index >= torch.cuda.device_count():
        raise ValueError(f"coop: there is no 'cuda:{index}', only {torch.cuda.device_count()} GPUs")
    return torch.device("cuda", index)
