"""What people call what is recorded: modules, parameters, gradients, the optimizer's state.

Only for as long as something is recorded: otherwise no module knows of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.weak import WeakIdKeyDictionary


class Names:
    """A scope: what runs inside is recorded under its module's name."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._modules = WeakIdKeyDictionary()  # nn.Module to str
        self._parameters = WeakIdKeyDictionary()  # Tensor to str
        self._named = WeakIdKeyDictionary()  # outermost modules
        self._inside = threading.local()
        self._hooks = ExitStack()

    def __enter__(self) -> Names:
        for hook in (
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
            register_optimizer_step_pre_hook(self._enter_optimizer),
            register_optimizer_step_post_hook(self._leave_optimizer),
        ):
            self._hooks.callback(hook.remove)
        return self

    def __exit__(self, *_) -> None:
        self._hooks.close()

    # --- modules ---

    def _enter_module(self, module: nn.Module, *_) -> None:
        if not self._is_recorded():
            return
        stack = self._stack()
        if module not in self._modules:
            self._learn(module, is_outermost=not stack)
        stack.append(self._modules[module])
        torch.ops.coop.record_module(stack[-1])

    def _leave_module(self, module: nn.Module, *_) -> None:
        if not self._is_recorded() or not self._stack():
            return  # it was entered before the recording began
        self._stack().pop()
        torch.ops.coop.record_module(self._stack()[-1] if self._stack() else "")
        if not self._stack() and module not in self._named:
            # Not before: what is read for the first time has not been heard of until then.
            self._named[module] = None
            for path, parameter in module.named_parameters():
                _name(parameter, f"parameter {path}")
            for path, buffer in module.named_buffers():
                _name(buffer, f"buffer {path}")

    def _stack(self) -> list[str]:
        """Of this thread, the outermost first."""
        if not hasattr(self._inside, "names"):
            self._inside.names = []
        return self._inside.names

    def _is_recorded(self) -> bool:
        """A compiled graph is one operator, and a forked process has no recording."""
        return not torch.compiler.is_compiling() and os.getpid() == self._process

    def _learn(self, module: nn.Module, *, is_outermost: bool) -> None:
        """By the way from the outermost one, which has none and goes by its class. One that is
        inside and on nobody's list was made on the way."""
        own = type(module).__name__
        self._modules.setdefault(module, _printable(own))
        if not is_outermost:
            return
        for path, inner in module.named_modules():
            if inner is not module:
                self._modules[inner] = _printable(path)
        for path, parameter in module.named_parameters():
            self._parameters[parameter] = path

    # --- gradients and the optimizer ---

    def _enter_optimizer(self, optimizer: Optimizer, *_) -> None:
        if not self._is_recorded():
            return
        for parameter, path in self._parameters_of(optimizer):
            _name(parameter, f"parameter {path}")  # of a module that was never outermost, too
            if parameter.grad is not None:
                _name(parameter.grad, f"gradient {path}")
        torch.ops.coop.record_module(_printable(type(optimizer).__name__))

    def _leave_optimizer(self, optimizer: Optimizer, *_) -> None:
        if not self._is_recorded():
            return
        torch.ops.coop.record_module(self._stack()[-1] if self._stack() else "")
        for parameter, path in self._parameters_of(optimizer):
            for what, state in optimizer.state.get(parameter, {}).items():
                if isinstance(state, Tensor):
                    _name(state, f"state {path}.{what}")

    def _parameters_of(self, optimizer: Optimizer) -> Iterator[tuple[Tensor, str]]:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                yield parameter, self._parameters.get(parameter, "of no module")


def _name(tensor: Tensor, text: str) -> None:
    """Not what is no plain tensor: that would want to answer for itself."""
    if type(tensor) in (Tensor, nn.Parameter):
        torch.ops.coop.record_name(tensor, _printable(text))


def _printable(text: str) -> str:
    """The trace is lines: it has no control characters."""
    return "".join(it if ord(it) >= 0x20 and ord(it) != 0x7F else "?" for it in text) or "?"
