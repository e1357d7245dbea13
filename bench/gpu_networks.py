"""Networks that fill a GPU: those of the paper that this project goes back to, and others."""

import random

import torch
from networks import Network, images
from torch import nn
from torch.nn import functional

WORDS = 30522


def bert_large(checkpointed=False):
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
    )
    model = BertForMaskedLM(config)
    if checkpointed:  # every layer, as people do by hand
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def words(size, length):
    def batch(step):
        inputs = torch.randint(WORDS, (size, length))
        return inputs, inputs

    return batch


def masked_words(model, inputs, targets):
    return model(input_ids=inputs, labels=targets).loss


def of_torchvision(name):
    def make():
        import torchvision

        return getattr(torchvision.models, name)()

    return make


class Cell(nn.Module):
    """An LSTM's, written out."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.of_input = nn.Linear(inputs, 4 * hidden)
        self.of_hidden = nn.Linear(hidden, 4 * hidden)

    def forward(self, x, hidden, memory):
        gates = self.of_input(x) + self.of_hidden(hidden)
        entry, forget, new, out = gates.chunk(4, 1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(entry) * torch.tanh(new)
        return torch.sigmoid(out) * torch.tanh(memory), memory


class BiLSTM(nn.Module):
    def __init__(self, inputs=100, hidden=256):
        super().__init__()
        self.cells = nn.ModuleList([Cell(inputs, hidden), Cell(inputs, hidden)])
        self.head = nn.Linear(2 * hidden, 1000)
        self.hidden = hidden

    def forward(self, x):  # batch, time, inputs
        last = []
        for cell, times in zip(self.cells, (x, x.flip(1)), strict=True):
            hidden = memory = x.new_zeros(len(x), self.hidden)
            for now in times.unbind(1):
                hidden, memory = cell(now, hidden, memory)
            last.append(hidden)
        return self.head(torch.cat(last, 1))


def sequences(size, length, width):
    return lambda step: (torch.randn(size, length, width), torch.randint(1000, (size,)))


class Choice(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.Conv2d(width, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return x + self.body(x)


class RandomPath(nn.Module):
    """In every step one of four blocks at each of its layers, drawn anew."""

    def __init__(self, layers=20, width=64):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        kernels = (3, 5, 7, 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(Choice(width, kernel) for kernel in kernels) for _ in range(layers)
        )
        self.head = nn.Linear(width, 1000)
        self.draw = random.Random(0)

    def forward(self, x):
        x = self.stem(x)
        for choices in self.layers:
            x = self.draw.choice(choices)(x)
        return self.head(functional.dropout(x.mean((2, 3)), 0.1))


BERT = {"batch": words(16, 512), "loss": masked_words}
GPU_NETWORKS = {
    "bert-large": Network(bert_large, **BERT),
    "resnet50": Network(of_torchvision("resnet50"), images(115, 224), is_adam=False),
    "resnet152": Network(of_torchvision("resnet152"), images(55, 224), is_adam=False),
    "swin-t": Network(of_torchvision("swin_t"), images(64, 224), is_adam=False),
    "bilstm": Network(BiLSTM, sequences(2048, 128, 100), is_adam=False),
    "random-path": Network(RandomPath, images(256, 32), is_adam=False),
}
# The same with torch.utils.checkpoint around every layer.
CHECKPOINTED = {"bert-large": Network(lambda: bert_large(checkpointed=True), **BERT)}
