"""Tensors that are written to, look at one another's memory, or get other memory."""

import copy

import torch
from torch import nn
from torch.nn import functional

from .autograd import layers, regress
from .program import Training, program


@program()
def slice_assignment():
    model = layers()
    seen = torch.zeros(8, 10)

    def forward(x):
        y = model(x)
        z = torch.zeros(len(y), 32)
        z[:, :10] = y
        z[:, 10:20] = y.tanh()
        z[::2, 20:30] += y[::2]
        z[-1] = 0.5
        with torch.no_grad():
            seen[:4] = z[:4, :10]
        return z * z.roll(1, 1)

    training = regress(model, forward)
    training.kept["seen"] = seen
    return training


@program()
def copies_in_place():
    """Into a buffer that lives over all steps, and into parts of a graph."""
    model = layers()
    buffer = torch.zeros(384, 10)

    def forward(x):
        y = model(x)
        target = torch.empty_like(y)
        target.copy_(y)
        target[:, :5].copy_(y[:, 5:])
        result = (target + buffer).tanh() + y
        with torch.no_grad():
            buffer.copy_(y)
            buffer[:8].copy_(buffer[8:16])
        return result

    training = regress(model, forward)
    training.kept["buffer"] = buffer
    return training


@program()
def index_writes():
    """index_put_, index_add_, scatter_, masked_fill_, and their like."""
    model = layers()
    counts = torch.zeros(16)

    def forward(x):
        y = model(x) + 0
        rows = torch.randint(0, len(y), (64,))
        columns = torch.randint(0, 10, (64,))
        y.index_put_((rows, columns), torch.ones(64), accumulate=True)
        y[rows[:8]] = 0.25
        z = torch.zeros_like(y).index_add_(0, rows, y[:64])
        z.scatter_(1, columns[:64].view(-1, 1).expand(-1, 2)[: len(z)], 2.0)
        z.scatter_add_(0, rows.view(-1, 1).expand(-1, 10), y[:64])
        z.masked_fill_(y > 0.5, 0.0)
        counts.index_add_(0, columns, torch.ones(64))
        return y + z.index_fill(1, columns[:1], 1.0)

    training = regress(model, forward)
    training.kept["counts"] = counts
    return training


@program()
def views_of_views():
    model = layers()

    def forward(x):
        y = model(x) + 0
        a = y.view(8, -1, 10).transpose(0, 1)
        b = a[1:, ::2].permute(2, 0, 1)
        b.mul_(2)
        c = y.t().unsqueeze(0).expand(3, -1, -1).diagonal(dim1=1, dim2=2)
        d = y.narrow(1, 2, 4).unfold(1, 2, 1)
        e = y[:, 3:].select(0, 5)
        y.add_(1)
        return torch.cat([(y * b.mean()).flatten(), c.flatten(), d.flatten(), e])

    return regress(model, forward)


@program()
def as_strided():
    model = layers()

    def forward(x):
        y = model(x) + 0
        windows = y.as_strided((300, 3, 10), (10, 10, 1))
        z = y * 1.5
        with torch.no_grad():
            z.as_strided((64, 5), (20, 2), 1).mul_(0.5)
        return (windows.amax(1) * z[:300]).tanh()

    return regress(model, forward)


@program()
def storage_exchanged_with_set():
    model = layers()
    held = torch.zeros(10)

    def forward(x):
        y = model(x)
        kept = y.detach() * 2
        held.set_(kept)  # lives on in the next step
        other = torch.empty(0)
        other.set_(kept.untyped_storage(), 10, (64, 10), (10, 1))
        other.add_(1)
        return y * held

    training = regress(model, forward)
    training.kept["held"] = held
    return training


@program()
def resized():
    model = layers()
    buffer = torch.zeros(0)
    sizes = iter([64, 384, 32, 200, 500])

    def forward(x):
        y = model(x)
        rows = next(sizes)
        buffer.resize_(rows, 10)
        buffer.zero_()
        some = min(rows, len(y))
        buffer[:some] = y[:some].detach()
        out = torch.empty(0)
        torch.mul(buffer, 2, out=out)
        return y[:some] * out[:some] + y[:some]

    training = regress(model, forward)
    training.kept["buffer"] = buffer
    return training


@program()
def data_exchanged():
    """`.data =` on parameters, activations and gradients."""
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        y = model(torch.randn(384, 32))
        z = y * 1.0
        z.data = y.data * 2
        z.data.clamp_(-1, 1)
        loss = (z * y).mean()
        loss.backward()
        for parameter in model.parameters():
            parameter.grad.data = parameter.grad.data.sign() * 0.01
        optimizer.step()
        model[0].weight.data = model[0].weight.data * 0.99
        model[2].weight.data.mul_(0.99)
        model[2].bias.data = torch.zeros(40)
        return loss

    return Training(step, [model], [optimizer])


@program()
def input_changed_after_use():
    model = layers()
    batch = torch.zeros(384, 32)

    def forward(_):
        batch.normal_()
        scaled = batch * 3
        y = model(scaled)
        kept = scaled.tanh().detach()
        inputs = batch.clone()
        z = functional.relu(inputs)
        batch.fill_(7)
        scaled.detach()[:, :4].sin()
        inputs.neg_()
        return y * kept[:, :10] + (z - inputs)[:, :10]

    return regress(model, forward)


@program()
def losses_kept_over_steps():
    """With all that they were made from; and a sum of them that is never read in between."""
    model = layers()
    training = regress(model)
    losses, total = [], torch.zeros(())

    def step():
        nonlocal total
        loss = training.step()
        losses.append(loss)
        total = total + loss * 2
        return loss

    return Training(step, [model], training.optimizers, {"losses": losses, "total": lambda: total})


@program()
def parameters_exchanged():
    """Tied, untied and swapped between steps."""
    model = layers(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0

    def exchange():
        if steps == 1:
            model[2].weight = model[4].weight
        elif steps == 2:
            model[4].weight.data, model[6].weight.data = model[6].weight.data, model[4].weight.data
        elif steps == 3:
            model[2].weight = nn.Parameter(model[2].weight.detach().clone() * 0.5)
            optimizer.add_param_group({"params": [model[2].weight]})
        elif steps == 4:
            torch.utils.swap_tensors(model[4].bias, model[6].bias)

    def step():
        nonlocal steps
        exchange()
        steps += 1
        optimizer.zero_grad()
        loss = model(torch.randn(384, 32)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


@program()
def state_loaded_in_mid_training():
    """A step of before comes back, model and optimizer; the second time in place of what is."""
    model = layers(5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    saved = []

    def step():
        if len(saved) in (2, 4):
            state, of_optimizer = saved[len(saved) // 2 - 1]
            model.load_state_dict(state, assign=len(saved) == 4)
            optimizer.load_state_dict(of_optimizer)
        optimizer.zero_grad()
        loss = model(torch.randn(384, 32)).square().mean()
        loss.backward()
        optimizer.step()
        saved.append((copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())))
        return loss

    return Training(step, [model], [optimizer])


@program()
def spectral_and_weight_norm():
    """Parametrizations: buffers written in every forward pass, weights made anew."""
    parametrizations = nn.utils.parametrizations
    model = layers(4)
    parametrizations.spectral_norm(model[2])
    parametrizations.weight_norm(model[4])
    return regress(model)
