"""Networks whose shape depends on chance or on their data."""

import torch
from torch import nn
from torch.nn import functional

from .autograd import layers
from .program import Training, program
from .vision import classify


class RandomPaths(nn.Module):
    """Another way through it in every step, and now and then a layer that is not used at all."""

    def __init__(self, width=40):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(8))
        self.shared = nn.Linear(width, width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            way = torch.rand(()).item()
            if way < 0.3:
                x = x + layer(x).relu()
            elif way < 0.6:
                x = self.shared(x).tanh()
            elif way < 0.8:
                x = torch.stack([layer(x), self.shared(x)]).amax(0)
        return self.head(x)


@program()
def random_paths():
    model = RandomPaths()
    return classify(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), (384, 40))


class TreeNetwork(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.leaf = nn.Linear(width, width)
        self.join = nn.Linear(2 * width, 2 * width)
        self.head = nn.Linear(width, 10)

    def visit(self, leaves):
        if len(leaves) == 1:
            return self.leaf(leaves[0]).tanh()
        cut = int(torch.randint(1, len(leaves), ()))
        sides = [self.visit(leaves[:cut]), self.visit(leaves[cut:])]
        both, gate = self.join(torch.cat(sides, -1)).chunk(2, -1)
        return both.tanh() * gate.sigmoid()

    def forward(self, x):
        return self.head(self.visit(list(x.unbind(1))))


@program()
def tree():
    model = TreeNetwork()
    return classify(model, torch.optim.Adam(model.parameters(), lr=1e-2), (96, 9, 24))


class Experts(nn.Module):
    """Each row goes to the experts that the router chooses: shapes depend on the data."""

    def __init__(self, width=32, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
            for _ in range(experts)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == index)
            if len(rows):
                out.index_add_(0, rows, expert(x[rows]) * weights[rows, slot, None])
        return self.head(functional.layer_norm(out + x, x.shape[-1:]))


@program()
def mixture_of_experts():
    model = Experts()
    return classify(model, torch.optim.AdamW(model.parameters(), lr=1e-2), (256, 32))


@program(least_share=1.1)
def masks_and_nonzero():
    """Boolean masks, unique and nonzero: shapes that only the data tells."""
    model = layers(3, outputs=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        y = model(torch.randn(256, 32))
        picked = y[y > 0]
        rows = torch.nonzero(y.amax(1) > 0.1).squeeze(1)
        classes = torch.unique(y.argmax(1))
        y = y.masked_fill(y.abs() > 1, 0.5)
        optimizer.zero_grad()
        loss = picked.square().mean() + y[rows].sum() * 0.01 + y[:, classes].mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])
