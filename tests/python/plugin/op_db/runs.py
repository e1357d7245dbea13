"""One sample of an operator, run plain and inside a budget."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from coop import _plugin
from torch.utils._pytree import tree_leaves, tree_map

from op_db.cases import DEVICE, Case, seed
from op_db.inputs import Recipe
from op_db.made import Made
from op_db.outcome import Outcome, differences

MIB = 1 << 20
POOL = 512 * MIB
MANY = 20


@dataclass(frozen=True)
class Kind:
    """What an operator is run in."""

    options: dict = field(default_factory=dict)  # of the budget
    has_budget: bool = True
    inputs_are_older: bool = False  # than the budget, as parameters often are

    def budget(self) -> AbstractContextManager[None]:
        if not self.has_budget:
            return nullcontext()
        return _plugin.budget(POOL, small_limit=0, **self.options)


PLAIN = Kind(has_budget=False)
KINDS = {
    "stress": Kind({"stress": True}),
    "older": Kind({"stress": True}, inputs_are_older=True),
    "audit": Kind({"audit": True}),
}


def _differentiable(tree: object) -> list[torch.Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor) and x.requires_grad]


def _gradient_for(result: torch.Tensor) -> torch.Tensor:
    """Neither all alike nor new memory, so that it can be evicted as well."""
    has_cosine = result.layout == torch.strided and result.dtype != torch.complex32
    return result.cos() if has_cosine else result.clone()


def _backward(results: object, sample, made: Made) -> None:
    outputs = _differentiable(sample.output_process_fn_grad(results))
    if not outputs:
        return
    with made.paused(), torch.no_grad():
        seeds = [_gradient_for(x.detach()) for x in outputs]
    torch.autograd.backward(outputs, seeds)


def _mode(variant: str) -> AbstractContextManager[object]:
    if variant == "inference":
        return torch.inference_mode()
    return torch.autocast(DEVICE, torch.bfloat16, enabled=variant == "autocast")


def _call(op, sample, variant: str, arguments: tuple, outcome: Outcome, made: Made) -> None:
    first, rest, named, out = arguments
    if variant == "out":
        with torch.no_grad():
            results = op(first, *rest, **named, out=out)
        outcome.add("result", results)
        outcome.add("out", out)
        return
    if variant == "inplace":
        with made.paused():
            first = first.clone()
        results = op.inplace_variant(first, *rest, **named)
        outcome.add("changed", first)
    else:
        with _mode(variant):
            results = op(first, *rest, **named)
    outcome.add("result", results)
    if variant != "inference":  # where a view of what needs a gradient says that it needs one, too
        _backward(results, sample, made)


def run(op, sample, variant: str, recipe: Recipe, kind: Kind) -> Outcome:
    outcome = Outcome()
    seed(1)
    try:
        arguments = recipe.copy() if kind.inputs_are_older else None
        with kind.budget():
            made = outcome.made = Made(is_counted=kind.has_budget)
            with made.paused():
                arguments = arguments or recipe.copy()
            _call(op, sample, variant, arguments, outcome, made)
            if kind.has_budget:
                torch.ops.coop.validate()
            made.stop()
    except Exception as error:
        outcome.error = error
        return outcome
    tensors = [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]
    outcome.add("argument", tensors)
    outcome.add("gradient", [x.grad if x.requires_grad and x.is_leaf else None for x in tensors])
    outcome.add("random state", torch.get_rng_state())
    if DEVICE == "cuda":
        outcome.add("random state", torch.cuda.get_rng_state())
    return outcome


def _out_of(op, sample) -> object:
    """Somewhere to put the results: as they are, with other contents."""
    seed(1)
    with torch.no_grad():
        first, rest, named = Recipe(sample.input, sample.args, sample.kwargs).copy()
        results = op(first, *rest, **named)
    return tree_map(lambda x: torch.zeros_like(x) if isinstance(x, torch.Tensor) else x, results)


def _reads_outside(op, sample) -> str | None:
    """Why PyTorch's own kernel reads memory that is not the operator's: whatever lies beside it."""
    if DEVICE != "cuda" or op.name != "nn.functional.pad" or "reflect" not in sample.args:
        return None
    is_negative = min(sample.args[0]) < 0
    return "the deterministic backward kernel knows no negative padding" if is_negative else None


def _has_no_deterministic_algorithm(op, sample, variant: str, recipe: Recipe) -> bool:
    """As it says itself, where that is to be an error."""
    torch.use_deterministic_algorithms(True)
    try:
        error = run(op, sample, variant, recipe, PLAIN).error
    finally:
        torch.use_deterministic_algorithms(True, warn_only=True)
    return "does not have a deterministic implementation" in str(error)


@dataclass
class Report:
    """Of one operator and type."""

    cases: int = 0
    differing: list[str] = field(default_factory=list)
    not_counted: list[str] = field(default_factory=list)  # with the reason
    made: dict[str, int] = field(default_factory=dict)  # bytes, as in class Made

    def add(self, case: Case, op, sample, kind: Kind) -> None:
        try:
            out = _out_of(op, sample) if case.variant == "out" else None
            recipe = Recipe(sample.input, sample.args, sample.kwargs, out)
        except Exception as error:
            self.not_counted.append(f"{case}: {type(error).__name__}: {error}")
            return
        plain = run(op, sample, case.variant, recipe, PLAIN)
        if plain.error:
            self.not_counted.append(f"{case}: {type(plain.error).__name__}: {plain.error}")
            return
        inside = run(op, sample, case.variant, recipe, kind)
        differing = differences(plain, inside)
        # Where threads add in any order, runs may well be equal by chance, even many of them.
        if differing and _has_no_deterministic_algorithm(op, sample, case.variant, recipe):
            self.not_counted.append(f"{case}: PyTorch has no deterministic algorithm for it")
            return
        if differing and (why := _reads_outside(op, sample)):
            self.not_counted.append(f"{case}: PyTorch reads outside of its arguments: {why}")
            return
        for _ in range(MANY if differing else 1):
            if differences(plain, run(op, sample, case.variant, recipe, PLAIN)):
                self.not_counted.append(f"{case}: its plain run does not repeat")
                return
        self.cases += 1
        self.differing += [f"{case}: {why}" for why in differing]
        for why, count in inside.made.bytes.items():
            self.made[why] = self.made.get(why, 0) + count


def prepare_process() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    _plugin.load()
