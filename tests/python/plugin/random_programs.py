"""Random tensor programs: views, writes, gradients, random numbers, small and large tensors mixed.

What a program does hangs on its seed and on shapes alone, never on contents: it is the same with
and without a budget, and whatever is left must be so too. One alone, with all that it does:

    python -m random_programs --seed 7 --verbose

(with `python` and `tests/python/plugin` on PYTHONPATH, and COOP_PLUGIN naming the library).
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import torch
from coop import _plugin
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
SHAPES = ((8, 16), (64, 64), (128, 160), (160, 128), (16, 2560), (200, 100))
MOST_TENSORS = 14
STEPS = 3
REFUSED = (RuntimeError, IndexError, ValueError)


class RandomProgram:
    def __init__(self, seed: int, say: Callable = lambda *_: None) -> None:
        self.draw = random.Random(seed)
        self.seed = seed
        self.say = say
        self.seen: list[torch.Tensor] = []  # what the program has looked at

    def begin(self) -> None:
        torch.manual_seed(self.seed)
        self.generator = torch.Generator().manual_seed(self.seed + 1)
        shapes = [self.draw.choice(SHAPES) for _ in range(3)]
        self.parameters = [torch.randn(shape).requires_grad_() for shape in shapes]
        self.momenta = [torch.zeros_like(it) for it in self.parameters]
        self.buffer = torch.zeros(160, 128)
        self.carried = None

    def step(self) -> None:
        self.tensors = [it * 1 for it in self.parameters]
        for _ in range(self.draw.randrange(6, 40)):
            kind, tensor = self.draw.choice(KINDS), self.draw.choice(self.tensors)
            self.say(kind.__name__, tuple(tensor.shape))
            with self.refusals():
                for made in kind(self, tensor) or ():
                    self.add(made)
        self.seen += [it.detach() for it in self.tensors[:2]]
        with self.refusals():
            self.backward()
        self.update()
        self.carried = self.draw.choice(self.tensors).detach()

    def refusals(self):
        return Refusals(self)

    def add(self, tensor: torch.Tensor) -> None:
        self.tensors.append(tensor)
        if len(self.tensors) > MOST_TENSORS:
            del self.tensors[self.draw.randrange(MOST_TENSORS - 4)]

    def other(self, tensor: torch.Tensor) -> torch.Tensor:
        """Of the same shape; itself, if there is none."""
        return self.draw.choice([it for it in self.tensors if it.shape == tensor.shape])

    def backward(self) -> None:
        roots = [it for it in self.tensors if it.requires_grad]
        if not roots:
            return
        roots = self.draw.sample(roots, min(3, len(roots)))
        loss = sum(it.clamp(-3, 3).tanh().mean() for it in roots)
        if self.draw.random() < 0.15:
            gradients = torch.autograd.grad(
                loss, self.parameters, create_graph=True, allow_unused=True
            )
            loss = loss + sum(it.tanh().mean() for it in gradients if it is not None)
        loss.backward(retain_graph=self.draw.random() < 0.1)
        self.seen.append(loss.detach())

    def update(self) -> None:
        with torch.no_grad():
            for parameter, momentum in zip(self.parameters, self.momenta, strict=True):
                if parameter.grad is None:
                    continue
                momentum.mul_(0.9).add_(parameter.grad)
                parameter.sub_(momentum, alpha=0.01)
                if self.draw.random() < 0.7:
                    parameter.grad = None
                else:
                    parameter.grad.mul_(0.5)

    def left(self) -> Iterator[torch.Tensor]:
        yield from self.parameters
        yield from (it.grad for it in self.parameters if it.grad is not None)
        yield from [*self.momenta, self.buffer, self.carried, *self.seen, *self.tensors]
        yield torch.get_rng_state()
        yield self.generator.get_state()


class Refusals:
    """What plain PyTorch refuses (a write that autograd objects to) is refused inside, too."""

    def __init__(self, program: RandomProgram) -> None:
        self.program = program

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, traceback) -> bool:
        is_ours = isinstance(error, torch.OutOfMemoryError) or "coop" in str(error)
        if error is None or is_ours or not isinstance(error, REFUSED):
            return False
        self.program.say("refused", str(error).splitlines()[0])
        self.program.seen.append(torch.tensor(len(str(error))))
        return True


# --- what it does: new tensors, if any ---


def of_one(program, x):
    name = program.draw.choice(["sin", "tanh", "sigmoid", "neg", "abs", "relu"])
    yield getattr(torch, name)(x)


def of_two(program, x):
    name = program.draw.choice(["add", "mul", "sub", "maximum"])
    yield getattr(torch, name)(x, program.other(x))


def product(program, x):
    if x.dim() == 2:
        yield x @ x.T / 8


def view(program, x):
    ways = [
        lambda: x.t(),
        lambda: x[::2],
        lambda: x[1:],
        lambda: x.view(-1),
        lambda: x.unsqueeze(0),
        lambda: x.detach(),
        lambda: x.reshape(-1)[: x.numel() // 2],
        lambda: x.expand(2, *x.shape),
    ]
    yield program.draw.choice(ways)()


def write(program, x):
    ways = [
        lambda: x.mul_(0.5),
        lambda: x.add_(program.other(x)),
        lambda: x.sin_(),
        lambda: x.zero_(),
        lambda: x.copy_(program.other(x)),
        lambda: x.masked_fill_(x > 0.5, 0.1),
        lambda: x.index_put_((torch.tensor([0, 1, 0]),), torch.ones(()), accumulate=True),
        lambda: x[1:].add_(x[:-1].clone()),
        lambda: x.__setitem__(0, 0.25),
    ]
    program.draw.choice(ways)()


def write_unseen_by_autograd(program, x):
    ways = [
        lambda: x.mul_(0.5),
        lambda: x.detach().add_(1),
        lambda: x.data.cos_(),
        lambda: torch._foreach_mul_([x.data, program.other(x).data], 0.5),
        lambda: x.data[::2].fill_(0.3),
    ]
    with torch.no_grad():
        program.draw.choice(ways)()


def drawn(program, x):
    ways = [
        lambda: functional.dropout(x, 0.3),
        lambda: x + torch.randn_like(x),
        lambda: torch.rand(x.shape, generator=program.generator) * x,
        lambda: torch.empty_like(x).normal_(),
        lambda: torch.bernoulli(x.detach().clamp(0, 1), generator=program.generator) + x,
    ]
    yield program.draw.choice(ways)()


def seed_anew(program, x):
    torch.manual_seed(program.draw.randrange(99))


def factory(program, x):
    yield torch.empty(x.shape).fill_(0.5)


def out(program, x):
    made = torch.empty(0) if program.draw.random() < 0.5 else torch.empty_like(x)
    yield torch.exp(x.detach().clamp(-2, 2), out=made.detach())


def buffered(program, x):
    if program.draw.random() < 0.5:
        flat = x.detach().reshape(-1)[: program.buffer.numel()]
        program.buffer.view(-1)[: len(flat)].add_(flat, alpha=0.1)
        program.buffer.clamp_(-5, 5)
    else:
        yield program.buffer.tanh()


def exchanged(program, x):
    made = x * 1
    made.data = program.other(x).data * 2
    yield made
    same = torch.empty(0)
    yield same.set_(x.detach())
    resized = (x * 1).detach()
    yield resized.resize_(max(1, len(x) // 2), *x.shape[1:])


def looked_at(program, x):
    made = x.detach() * 1
    array = made.numpy()
    doubled = made * 2
    array.flat[0] = 7
    program.seen.append(torch.tensor(x.flatten()[:3].tolist()))
    yield made
    yield doubled


def several(program, x):
    ways = [
        lambda: x.sort(dim=-1)[:1],
        lambda: x.split(max(1, len(x) // 2)),
        lambda: [functional.batch_norm(x.reshape(len(x), -1), None, None, training=True)],
        lambda: [functional.layer_norm(x, x.shape[-1:]), x.cumsum(0)],
        lambda: [(x.to(torch.bfloat16) * 2).float()],
    ]
    yield from program.draw.choice(ways)()


def checkpointed(program, x):
    def forward(a):
        return functional.dropout(a.sin(), 0.2) * a

    yield checkpoint(forward, x, use_reentrant=False)


def bits(program, x):
    made = x.detach() * 1
    made.view(torch.int32).bitwise_and_(-2)
    yield made


def from_the_step_before(program, x):
    if program.carried is not None:
        yield program.carried


def dropped(program, x):
    if len(program.tensors) > 4:
        del program.tensors[program.draw.randrange(len(program.tensors))]


OFTEN = (of_one, of_two, view, write)
KINDS = (
    *OFTEN,
    *OFTEN,
    *OFTEN,
    product,
    write_unseen_by_autograd,
    drawn,
    drawn,
    seed_anew,
    factory,
    out,
    buffered,
    exchanged,
    looked_at,
    several,
    checkpointed,
    bits,
    from_the_step_before,
    dropped,
)


def run(seed: int, budget=None, say: Callable = lambda *_: None):
    """All that is left, and the budget's counters."""
    program = RandomProgram(seed, say)
    stats = {}
    with budget or nullcontext():
        program.begin()
        for _ in range(STEPS):
            program.step()
        if budget:
            torch.ops.coop.validate()
            stats = _plugin.stats()
    return [it.detach().clone() for it in program.left()], stats


def budgets(seed: int) -> Iterator[tuple[str, object]]:
    """Whatever it is that may go wrong, in budgets that it may be out of memory in."""
    draw = random.Random(seed)
    yield "stress", _plugin.budget(64 * MIB, stress=True, small_limit=0)
    _, stats = run(seed, _plugin.budget(64 * MIB, small_limit=4096))
    for share in (0.9, 0.75, 0.6):
        options = {
            "small_limit": draw.choice([0, 4096, 65536]),
            "verify": draw.random() < 0.5,
            "policy": draw.choice(["coop", "coop", "dtr", "lru", "random"]),
        }
        yield (
            f"{share:.0%} {options}",
            _plugin.budget(int(share * stats["peak_held_bytes"]), **options),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    from programs.program import is_same

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    warnings.simplefilter("ignore")  # of what a program does to its tensors
    replays, is_same_everywhere = 0, True
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        wanted, _ = run(seed, say=print if arguments.verbose else lambda *_: None)
        for name, budget in budgets(seed):
            try:
                left, stats = run(seed, budget)
            except torch.OutOfMemoryError:
                print(f"seed {seed}, {name}: out of memory")
                continue
            except RuntimeError as error:
                raise RuntimeError(f"seed {seed}, {name}") from error
            pairs = enumerate(zip(wanted, left, strict=True))
            others = [i for i, (a, b) in pairs if not is_same(a, b)]
            print(f"seed {seed}, {name}: {stats['replays']} replays, differing: {others}")
            replays += stats["replays"]
            is_same_everywhere = is_same_everywhere and not others
    print(f"{replays} replays")
    sys.exit(not is_same_everywhere)


if __name__ == "__main__":
    main()
