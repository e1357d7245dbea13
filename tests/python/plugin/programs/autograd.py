"""What a program can do with autograd."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from .program import Training, program


def layers(depth=7, width=40, inputs=32, outputs=10) -> nn.Sequential:
    hidden = [it for _ in range(depth) for it in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), *hidden, nn.Linear(width, outputs))


def regress(model: nn.Module, forward=None, *, batch=384, lr=0.1) -> Training:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    forward = forward or model

    def step():
        optimizer.zero_grad()
        loss = forward(torch.randn(batch, 32)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant):
        super().__init__()
        self.first = nn.Linear(32, 40)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(40, 40), nn.BatchNorm1d(40), nn.ReLU(True), nn.Dropout(0.2))
            for _ in range(4)
        )
        self.use_reentrant = use_reentrant

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.use_reentrant)
        return x


@program()
def checkpoint_reentrant():
    return regress(Checkpointed(True))


@program()
def checkpoint_not_reentrant():
    return regress(Checkpointed(False))


class ClippedCube(torch.autograd.Function):
    """Saves an input, an output and something that is neither."""

    @staticmethod
    def forward(ctx, x, limit):
        y = x.pow(3).clamp_(-limit, limit)
        mask = y.abs() < limit
        ctx.save_for_backward(x, y)
        ctx.mask = mask
        ctx.mark_non_differentiable(mask)
        return y, mask

    @staticmethod
    def backward(ctx, gradient, _):
        x, y = ctx.saved_tensors
        return gradient * 3 * x * x * ctx.mask + 0.01 * y, None


class AddInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.add_(y)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient


@program()
def custom_function():
    model = layers()

    def forward(x):
        for index, layer in enumerate(model):
            x = layer(x)
            if index % 3 == 2:
                x, mask = ClippedCube.apply(x, 0.5)
                x = AddInPlace.apply(x * 2, mask.float())
        return x

    return regress(model, forward)


@program()
def hooks():
    """They look, replace what passes, and keep something for later."""
    model = layers()
    seen = []
    for index, layer in enumerate(model):
        if index % 3 == 0:
            layer.register_forward_hook(lambda _, inputs, output: output * 1.01)
        if index % 3 == 1:
            layer.register_full_backward_hook(
                lambda _, gradient_in, gradient_out: tuple(g * 0.9 for g in gradient_in)
            )
        if index % 3 == 2:
            layer.register_forward_pre_hook(lambda _, inputs: (inputs[0] + 0.1,))
            layer.register_full_backward_pre_hook(lambda _, gradients: (gradients[0] * 1.1,))
    model[0].weight.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
    model[2].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.norm()))
    training = regress(model)
    training.kept["seen"] = seen
    return training


@program()
def hooks_that_write():
    """In place: into outputs, gradients on their way, parameters and buffers."""
    model = layers()
    norm = nn.BatchNorm1d(40)
    count = torch.zeros(64, 40)

    def write_output(_, inputs, output):
        output.mul_(1.01)
        with torch.no_grad():
            count.add_(output[:64].detach())

    def write_gradient(_, gradient_in, gradient_out):
        gradient_in[0].mul_(0.9)

    def write_gradient_of_output(_, inputs, output):
        output.register_hook(lambda gradient: gradient.add_(1e-3))

    model[0].register_forward_hook(write_output)
    model[4].register_full_backward_hook(write_gradient)
    model[3].register_forward_hook(write_gradient_of_output)

    def write_accumulated(parameter):
        parameter.grad.mul_(0.5)

    def at_once(parameter):  # an optimizer in the backward pass
        with torch.no_grad():
            parameter -= 0.1 * parameter.grad
        parameter.grad = None

    model[2].weight.register_post_accumulate_grad_hook(write_accumulated)
    model[4].weight.register_post_accumulate_grad_hook(at_once)

    def write_statistics(module, inputs):
        module.running_mean.mul_(0.5)

    norm.register_forward_pre_hook(write_statistics)

    def forward(x):
        return model[1:](norm(model[0](x)))

    training = regress(model, forward)
    return Training(training.step, [model, norm], training.optimizers, {"count": count})


@program()
def saved_tensors_hooks():
    """What is saved for backward is packed into another type, or kept apart."""
    model = layers()
    apart = {}

    def pack(x):
        if x.numel() % 3 == 0:
            return x.to(torch.float64)
        apart[len(apart)] = x + 0
        return len(apart) - 1

    def unpack(it):
        return it.to(torch.float32) if isinstance(it, torch.Tensor) else apart[it].clone()

    def forward(x):
        apart.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return model(x)

    return regress(model, forward, batch=399)


@program()
def saved_on_cpu():
    model = layers()

    def forward(x):
        with torch.autograd.graph.save_on_cpu():
            return model(x)

    return regress(model, forward)


@program()
def retain_graph():
    model = layers()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kept = []

    def step():
        optimizer.zero_grad()
        y = model(torch.randn(384, 32))
        y.retain_grad()
        loss = y.square().mean()
        loss.backward(retain_graph=True)
        y.abs().mean().backward(retain_graph=True)
        again = torch.autograd.grad(loss, model[0].weight)
        kept[:] = [y.grad, *again]
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer], {"gradients": kept})


@program()
def gradient_accumulation_and_clipping():
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    norms = []

    def step():
        optimizer.zero_grad()
        total = 0
        for _ in range(2):
            loss = model(torch.randn(384, 32)).square().mean() / 2
            loss.backward()
            total = total + loss.detach()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.05))
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        optimizer.step()
        return total

    return Training(step, [model], [optimizer], {"norms": norms})


@program()
def gradients_set_to_zero():
    model = layers()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = model(torch.randn(384, 32)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


@program()
def gradients_set_to_none_and_by_hand():
    model = layers()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        model.zero_grad(set_to_none=True)
        loss = model(torch.randn(384, 32)).square().mean()
        parameters = list(model.parameters())
        gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


@program()
def double_backward_to_the_input():
    model = layers(4)

    def forward(x):
        x.requires_grad_()
        y = functional.softplus(model(x))
        (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.cat([y, gradient], 1)

    return regress(model, forward)
