"""Two LSTMs over a sequence, from either end, their cells written out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from coop.bench.networks.workload import Workload, sequences


def full(batch: int) -> Workload:
    return Workload(lambda: BiLSTM(100, 256), sequences(batch, 128, 100))


def small(batch: int) -> Workload:
    return Workload(lambda: BiLSTM(64, 128), sequences(batch, 16, 64))


class Cell(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(inputs, 4 * hidden)
        self.of_hidden = nn.Linear(hidden, 4 * hidden)

    def forward(self, x: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.of_input(x) + self.of_hidden(hidden)
        entry, forget, new, out = gates.chunk(4, 1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(entry) * torch.tanh(new)
        return torch.sigmoid(out) * torch.tanh(memory), memory


class BiLSTM(nn.Module):
    def __init__(self, inputs: int, hidden: int, classes: int = 10) -> None:
        super().__init__()
        self.cells = nn.ModuleList([Cell(inputs, hidden), Cell(inputs, hidden)])
        self.head = nn.Linear(2 * hidden, classes)
        self.hidden = hidden

    def forward(self, x: Tensor) -> Tensor:  # batch, time, inputs
        times = x.unbind(1)
        last = []
        for cell, order in zip(self.cells, (times, times[::-1]), strict=True):
            hidden = memory = x.new_zeros(len(x), self.hidden)
            for now in order:
                hidden, memory = cell(now, hidden, memory)
            last.append(hidden)
        return self.head(torch.cat(last, 1))
