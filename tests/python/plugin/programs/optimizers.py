"""Every optimizer, on the same small network."""

import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler, swa_utils

from .program import Training, program


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(32, 40),
        nn.BatchNorm1d(40),
        nn.ReLU(inplace=True),
        *[it for _ in range(4) for it in (nn.Linear(40, 40), nn.Tanh())],
        nn.Linear(40, 8),
    )


def train(model: nn.Module, optimizer, after_step=lambda: None) -> Training:
    def step():
        x = torch.randn(384, 32)
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), x[:, :8].sin())
        loss.backward()
        optimizer.step()
        after_step()
        return loss

    return Training(step, [model], [optimizer])


OPTIMIZERS = {
    "sgd_with_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd_foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "sgd_fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=False),
    "adam_foreach": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=True),
    "adam_fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, lr=torch.tensor(1e-2), amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=False),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=True),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5, centered=True),
    "rmsprop_foreach": lambda p: torch.optim.RMSprop(p, lr=1e-3, foreach=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
    "adagrad_foreach": lambda p: torch.optim.Adagrad(p, lr=1e-2, foreach=True),
    "adadelta": lambda p: torch.optim.Adadelta(p),
}


def register(name: str, optimizer) -> None:
    def build():
        model = network()
        return train(model, optimizer(model.parameters()))

    build.__name__ = name
    program()(build)


for _name, _optimizer in OPTIMIZERS.items():
    register(_name, _optimizer)


@program()
def lbfgs():
    model = network()
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=0.5, max_iter=3, history_size=4, line_search_fn="strong_wolfe"
    )

    def step():
        x = torch.randn(384, 32)

        def closure():
            optimizer.zero_grad()
            loss = functional.mse_loss(model(x), x[:, :8].sin())
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Training(step, [model], [optimizer])


@program()
def swa_of_weights():
    model = network()
    average = swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
    steps = 0

    def after_step():
        nonlocal steps
        steps += 1
        if steps >= 2:
            average.update_parameters(model)
            scheduler.step()
        if steps == 5:
            swa_utils.update_bn([torch.randn(256, 32) for _ in range(3)], average)

    training = train(model, optimizer, after_step)
    return Training(training.step, [model, average], [optimizer])


@program()
def ema_of_weights():
    model = network()
    average = swa_utils.AveragedModel(
        model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
    )
    shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def after_step():
        average.update_parameters(model)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                shadow[name].mul_(0.9).add_(parameter, alpha=0.1)

    training = train(model, optimizer, after_step)
    return Training(training.step, [model, average], [optimizer], {"shadow": shadow})


SCHEDULERS = {
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
    "one_cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=5),
    "warm_up_and_decay": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=2), lr_scheduler.ExponentialLR(o, 0.9)], [2]
    ),
}


def register_scheduler(name: str, scheduler) -> None:
    def build():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return train(model, optimizer, scheduler(optimizer).step)

    build.__name__ = "scheduler_" + name
    program()(build)


for _name, _scheduler in SCHEDULERS.items():
    register_scheduler(_name, _scheduler)


@program()
def scheduler_on_plateau():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.05))
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    training = train(model, optimizer)

    def step():
        loss = training.step()
        scheduler.step(loss)
        return loss

    return Training(step, [model], [optimizer])
