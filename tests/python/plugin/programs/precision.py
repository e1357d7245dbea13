"""Other types than float32."""

import torch
from torch import nn
from torch.nn import functional

from .autograd import layers
from .program import Training, program
from .vision import ResNet


def train_under_autocast(model, optimizer, scaler=None) -> Training:
    norms = []

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = functional.cross_entropy(
                model(torch.randn(8, 3, 16, 16)), torch.randint(0, 10, (8,))
            )
        if scaler is None:
            loss.backward()
            optimizer.step()
            return loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        scaler.step(optimizer)
        scaler.update()
        return loss

    kept = {"norms": norms}
    if scaler is not None:
        kept["scaler"] = scaler.state_dict
    return Training(step, [model], [optimizer], kept)


@program()
def autocast_bfloat16():
    model = ResNet()
    return train_under_autocast(model, torch.optim.AdamW(model.parameters(), lr=1e-3))


@program()
def autocast_bfloat16_with_scaler():
    model = ResNet()
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return train_under_autocast(model, optimizer, scaler)


@program()
def scaler_that_skips_a_step():
    """Gradients that are not finite: the step is left out, and the scale halved."""
    model = layers(5)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**60, growth_interval=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = (model(torch.randn(384, 32)) * 1e12).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return Training(step, [model], [optimizer], {"scaler": scaler.state_dict})


@program()
def model_moved_to_another_type():
    """From float32 to float64 to bfloat16 and back, between steps; parameters stay who they are."""
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    types = iter([torch.float64, torch.float64, torch.bfloat16, torch.float32, torch.float16])

    def step():
        model.to(next(types))
        optimizer.zero_grad()
        x = torch.randn(384, 32).to(model[0].weight.dtype)
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


@program()
def complex_numbers():
    """Conjugate views, and a transform there and back."""
    filters = nn.Parameter(torch.randn(8, 33, dtype=torch.complex64) * 0.1)
    optimizer = torch.optim.Adam([filters], lr=1e-2)

    def step():
        signal = torch.randn(32, 64)
        spectrum = torch.fft.rfft(signal)[:, None] * filters
        power = (spectrum.conj() * filters.conj().mean(0)).real
        made = torch.fft.irfft(spectrum)
        optimizer.zero_grad()
        loss = made.square().mean() + torch.view_as_real(spectrum).abs().mean() + power.mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, (), [optimizer], {"filters": lambda: [filters, filters.grad]})
