"""Code between the program and its operators: transforms, subclasses, modes, compilers."""

import os
import shutil

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .autograd import layers, regress
from .program import Training, program
from .vision import ResNet, classify


@program()
def functional_gradients():
    """torch.func: a model without state, its gradient, one gradient for each row."""
    model = layers(4, outputs=1)
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    def loss_of(weights, x):
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    def step():
        nonlocal weights
        x = torch.randn(16, 32)
        gradients, loss = torch.func.grad_and_value(loss_of)(weights, x)
        each = torch.vmap(torch.func.grad(loss_of), in_dims=(None, 0))(weights, x)
        clipped = {name: g.clamp(-0.1, 0.1).mean(0) for name, g in each.items()}
        weights = {
            name: w - 0.1 * gradients[name] - 0.1 * clipped[name] for name, w in weights.items()
        }
        return loss

    return Training(step, [model], kept={"weights": lambda: weights})


@program()
def functional_jacobians():
    model = layers(1, width=24, outputs=4)

    def forward(x):
        jacobian = torch.func.vmap(torch.func.jacrev(model))(x)
        _, tangent = torch.func.jvp(model, (x,), (torch.ones_like(x),))
        return jacobian.flatten(1).sum(1, keepdim=True) + tangent

    return regress(model, forward, batch=24, lr=1e-3)


@program()
def operators_that_take_functions():
    """torch.cond: Python dispatches it, and what its branches call is seen."""
    torch._dynamo.reset()
    model = layers(4)

    def forward(x):
        y = model(x)
        z = torch.cond(y.sum() > 0, lambda a: a.sin() * 2, lambda a: a.cos(), (y,))
        return z * y

    return regress(model, forward)


class Counted(torch.Tensor):
    """Overrides functions, and is an ordinary tensor below."""

    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Counted.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


@program()
def subclass_of_functions():
    model = layers()

    def forward(x):
        return model(x.as_subclass(Counted)).as_subclass(torch.Tensor)

    return regress(model, forward)


class Pair(torch.Tensor):
    """Two tensors that look like one; every operator is done with both."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.shape, strides=a.stride(), dtype=a.dtype, requires_grad=a.requires_grad
        )

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def part(name):
            take = lambda it: getattr(it, name) if isinstance(it, Pair) else it  # noqa: E731
            return function(*tree_map(take, args), **tree_map(take, kwargs or {}))

        first, second = part("a"), part("b")
        if isinstance(first, torch.Tensor):
            return Pair(first, second)
        return first


@program()
def subclass_of_operators():
    model = layers(5)

    def forward(x):
        y = model(Pair(x, x * 2)).tanh()
        return Unpaired.apply(y)

    return regress(model, forward)


class Unpaired(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pair):
        return pair.a + pair.b

    @staticmethod
    def backward(ctx, gradient):
        return Pair(gradient, gradient * 0.5)


class Counting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += 1
        return function(*args, **(kwargs or {}))


@program()
def dispatch_mode():
    model = layers()
    mode = Counting()

    def forward(x):
        with mode:
            return model(x)

    training = regress(model, forward)
    training.kept["calls"] = lambda: mode.calls
    return training


@program()
def evaluation_between_steps():
    """Under no_grad and in inference mode, with what it gives kept."""
    model = ResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    training = classify(model, optimizer)
    results = []

    def step():
        loss = training.step()
        model.eval()
        with torch.no_grad():
            results.append(model(torch.randn(8, 3, 16, 16)).argmax(1))
        with torch.inference_mode():
            results.append(model(torch.randn(8, 3, 16, 16)).softmax(1) + 0)
        model.train()
        return loss

    return Training(step, [model], [optimizer], {"results": results})


@program()
def trained_on_what_inference_made():
    teacher, model = layers(5), layers(5)

    def forward(x):
        with torch.inference_mode():
            wanted = teacher(x)
        return model(x) - wanted.clone()

    return regress(model, forward)


@program()
def assigned_in_every_row():
    """A number, which vmap has in its hands, and PyTorch compares by address."""
    model = layers(4, outputs=1)

    def assigned(row, number):
        row = row.clone()
        row[0] = number
        return row

    def forward(x):
        return model(torch.vmap(assigned)(x, x.sum(1)))

    return regress(model, forward)


@program()
def brought_back_for_inference():
    """What lists of tensors were changed to. Their operators count versions themselves, which
    tensors that are made inside of inference_mode do not have."""
    model = nn.Sequential(*[nn.Linear(40, 40, bias=False) for _ in range(3)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
    results = []

    def step():
        model(torch.randn(16, 40)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        doubled = [it * 2 for it in model.parameters()]
        torch._foreach_mul_(doubled, 0.5)
        with torch.inference_mode():
            results.append(model(torch.randn(16, 40)) + 0)
            results.extend(it + 1 for it in doubled)
        return results[-1].sum()

    return Training(step, [model], [optimizer], {"results": results})


def without_compiler():
    return None if shutil.which("g++") or shutil.which("clang++") else "there is no C++ compiler"


def compiled(backend):
    inner = nn.Sequential(nn.Linear(40, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 40))
    model = nn.ModuleList([layers(3, outputs=40), inner, layers(3, inputs=40)])
    fast = torch.compile(inner, backend=backend)

    def forward(x):
        x = model[0](x)
        return model[2](fast(x) + x)

    return regress(model, forward)


@program()
def compiled_part_without_kernels():
    return compiled("aot_eager")


@program()
def compiled_part_of_changing_size():
    """From the second batch size on it is compiled for any: sizes are symbols meanwhile."""
    inner = nn.Sequential(nn.Linear(40, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 40))
    model = nn.ModuleList([layers(3, outputs=40), inner, layers(3, inputs=40)])
    fast = torch.compile(inner, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sizes = iter([384, 256, 320, 384, 200])

    def step():
        optimizer.zero_grad()
        x = model[0](torch.randn(next(sizes), 32))
        loss = model[2](fast(x) + x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


@program(skip=without_compiler)
def compiled_part():
    return compiled("inductor")


def fused_on_a_gpu():
    if os.environ["COOP_DEVICE"] == "cpu":
        return None
    return "what TorchScript fuses takes addresses of evicted tensors, an error (docs/cuda.md)"


@program(skip=fused_on_a_gpu)
def scripted_part():
    model = layers(5)
    gate = nn.Linear(10, 10)
    both = nn.ModuleList([model, gate])

    @torch.jit.script
    def mix(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x * y.sigmoid() + 0.1
        return x

    def forward(x):
        y = model(x)
        return mix(y, functional.relu(gate(y)))

    return regress(both, forward)
