"""Trainings whose memory ends somewhere, and that go on with a smaller batch.

The same training runs inside a budget and without coop. There the same error is raised at the same
operators: before the operator begins, or where its kernel asks for the memory that it does not get.
Whatever is left at the end must be the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, zip_longest
from pathlib import Path
from traceback import walk_tb

import coop
import torch
from programs import Outcome, differences
from torch import nn
from torch.nn import functional

STEPS = 4
ANY = "none"  # memory for a number of the program's, between two operators


@dataclass
class Training:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    step: Callable[[int], torch.Tensor]  # of the batch size; the loss
    state: dict[str, torch.Tensor] = field(default_factory=dict)  # carried over steps


def mlp_adam() -> Training:
    sizes = (32, 64, 64, 64, 64)
    layers = [it for a, b in pairwise(sizes) for it in (nn.Linear(a, b), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=True)

    def step(batch: int) -> torch.Tensor:
        x = torch.randn(4 * batch, 32)
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), x[:, :8].sin())
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, optimizer, step)


def convnet_sgd() -> Training:
    def block():
        return nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        *block(),
        *block(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=False)

    def step(batch: int) -> torch.Tensor:
        x, y = torch.randn(batch, 3, 8, 8), torch.randint(0, 10, (batch,))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, optimizer, step)


def transformer_dropout() -> Training:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.2, batch_first=True)
    model = nn.Sequential(nn.Embedding(50, 32), layer, nn.Dropout(0.3), nn.Linear(32, 50))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step(batch: int) -> torch.Tensor:
        words = torch.randint(0, 50, (batch, 16))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(words).flatten(0, 1), words.roll(1, 1).flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return Training(model, optimizer, step)


def carried_state() -> Training:
    """What is carried over steps is cut off from its history, and cut down with the batch."""
    sizes = {"in": (16, 48), "own": (48, 48), "out": (48, 16)}
    model = nn.ModuleDict({name: nn.Linear(*it) for name, it in sizes.items()})
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.5)
    state = {"hidden": torch.zeros(256, 48), "mean": torch.zeros(48)}

    def step(batch: int) -> torch.Tensor:
        rows = 8 * batch
        hidden, loss = state["hidden"][:rows], torch.zeros(())
        optimizer.zero_grad()
        for _ in range(4):
            x = torch.randn(rows, 16)
            hidden = (model["in"](x) + model["own"](hidden)).tanh_()
            loss = loss + (model["out"](hidden) - x.cos()).square().mean()
        state["hidden"] = hidden.detach()
        state["mean"].mul_(0.9).add_(state["hidden"].mean(0))
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, optimizer, step, state)


def accumulation() -> Training:
    model = nn.Sequential(
        nn.Linear(32, 64),
        nn.ReLU(inplace=True),
        nn.Dropout(0.1),
        nn.Linear(64, 64),
        nn.GELU(),
        nn.Linear(64, 4),
    )
    optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)

    def step(batch: int) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=False)
        total = torch.zeros(())
        for _ in range(3):
            x = torch.randn(4 * batch, 32)
            loss = functional.mse_loss(model(x), x[:, :4]) / 3
            loss.backward()
            total += loss.detach()
        optimizer.step()
        return total

    return Training(model, optimizer, step)


TRAININGS = {
    it.__name__: it
    for it in (mlp_adam, convnet_sgd, transformer_dropout, carried_state, accumulation)
}


@dataclass
class Failure:
    operator: int  # its number among all that ran
    facts: coop.OutOfMemoryFacts | None
    allocations: int  # requests for memory until then
    text: str
    place: str  # forward, backward or optimizer


@dataclass
class Run:
    outcome: Outcome
    operators: list[str]
    failures: list[Failure]
    sizes: list[int]  # of all requests for memory
    stats: dict[str, int]


class Watch:
    """The operators of this thread: those with the numbers `failing` fail."""

    def __init__(self, failing: Sequence[int] = ()) -> None:
        self.failing = list(failing)
        self.operators: list[str] = []

    def __enter__(self) -> Watch:
        torch.ops.coop.begin_watching([it - len(self.operators) for it in self.failing])
        return self

    def __exit__(self, *_: object) -> None:
        self.operators += torch.ops.coop.end_watching()

    def last(self, *, is_between: bool) -> int:
        """The number of the one that failed; between: before the one that would have come next."""
        self.__exit__()
        # An optimizer's step ends with a profiler's, whatever happens.
        real = (n for n, it in enumerate(self.operators) if not it.startswith("profiler::"))
        number = max(real)
        if is_between:
            number += 1
            self.operators.insert(number, ANY)
        self.__enter__()
        return number


def place_of(error: BaseException) -> str:
    """Of a step, where it failed."""
    frames = [it.f_code for it, _ in walk_tb(error.__traceback__)]
    if any("torch/optim/" in it.co_filename for it in frames):
        return "optimizer"
    return "backward" if any(it.co_name == "backward" for it in frames) else "forward"


def are_same(ours: list[str], plain: list[str]) -> bool:
    """The operators that ran."""
    return all(a in (b, ANY) for a, b in zip_longest(ours, plain))


def train(
    build: Callable[[], Training],
    *,
    seed: int = 1,
    budget: AbstractContextManager | None = None,
    is_older: bool = True,
    failing: Sequence[int] = (),
    failing_allocations: Sequence[int] = (),
    ends_at_failure: bool = False,
) -> Run:
    """Whenever there is no memory, the gradients are dropped and the batch is halved.

    is_older: the model is older than the budget.
    failing: operators that fail before they begin, by number.
    failing_allocations: requests for memory that fail.
    ends_at_failure: nothing is dropped, and no other batch is tried: all is left as it was then.
    """
    torch.manual_seed(seed)
    batch, losses, batches, ends = 32, [], [], []
    run = Run(Outcome(), [], [], [], {})
    if is_older:
        training = build()
    with ExitStack() as stack:
        stack.enter_context(budget or nullcontext())
        if not is_older:
            training = build()
        torch.ops.foreign.begin_allocations(failing_allocations)
        watch = stack.enter_context(Watch(failing))
        for _ in range(STEPS):
            batches.append(batch)
            try:
                losses.append(training.step(batch).detach())
            except torch.OutOfMemoryError as error:
                facts = coop.last_oom() if budget else None
                failed = watch.last(is_between=facts is not None and not facts.op)
                allocations = torch.ops.foreign.allocations()
                run.failures.append(
                    Failure(failed, facts, allocations, str(error), place_of(error))
                )
                if ends_at_failure:
                    break
                training.optimizer.zero_grad(set_to_none=True)
                batch = max(batch // 2, 1)
            except KeyError as error:
                # The state of the optimizer is there in part: without coop it ends like this, too.
                ends.append(len(str(error)))
                break
        if budget:
            torch.ops.coop.validate()
            run.stats = torch.ops.coop.stats()
    run.sizes = torch.ops.foreign.end_allocations()
    run.operators = watch.operators
    # Outside again: what lives on must have come along.
    run.outcome.keep("losses", losses)
    run.outcome.keep("batches", batches)
    run.outcome.keep("ends", ends)
    run.outcome.keep_model("model", training.model)
    run.outcome.keep("optimizer", training.optimizer.state_dict())
    run.outcome.keep("state", training.state)
    run.outcome.keep("random state", torch.get_rng_state())
    return run


def is_same(a: Outcome, b: Outcome) -> bool:
    return a.tensors.keys() == b.tensors.keys() and not differences(a, b)


@cache
def load() -> None:
    """The allocator that fails on demand, in front of coop's: that has to be there before."""
    library = Path(os.environ["COOP_PLUGIN"]).parents[1] / "tests/libcoop_foreign.so"
    torch.ops.load_library(library)
    with coop.budget("1MiB"):
        pass
    torch.ops.foreign.install_failing_allocator()
