"""Networks for sequences."""

import torch
from torch import nn
from torch.nn import functional

from .program import Training, program
from .vision import classify


def predict_next(model: nn.Module, optimizer, batch=8, length=16, words=32) -> Training:
    def step():
        text = torch.randint(0, words, (batch, length + 1))
        optimizer.zero_grad()
        scores = model(text[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


class Transformer(nn.Module):
    """Norm first, and a causal mask: attention goes through PyTorch's own operator."""

    def __init__(self, words=32, width=32, layers=2, is_tied=False):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(64, width) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 64, dropout=0.1, batch_first=True, norm_first=index % 2 == 0
            )
            for index in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        if is_tied:
            self.head.weight = self.embed.weight

    def forward(self, text):
        length = text.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = functional.dropout(self.embed(text) + self.places[:length], 0.1, self.training)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


@program()
def transformer_with_dropout():
    model = Transformer()
    return predict_next(model, torch.optim.AdamW(model.parameters(), lr=1e-3))


@program()
def weight_tying():
    model = Transformer(layers=1, is_tied=True)
    return predict_next(model, torch.optim.Adam(model.parameters(), lr=1e-3))


class LSTMCell(nn.Module):
    """Written out, gates and all."""

    def __init__(self, inputs, width):
        super().__init__()
        self.gates = nn.Linear(inputs + width, 4 * width)

    def forward(self, x, state):
        hidden, memory = state
        i, f, g, o = self.gates(torch.cat([x, hidden], 1)).chunk(4, 1)
        memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
        return o.sigmoid() * memory.tanh(), memory


class GRUCell(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.gates = nn.Linear(inputs + width, 2 * width)
        self.candidate = nn.Linear(inputs + width, width)

    def forward(self, x, state):
        (hidden,) = state
        r, z = self.gates(torch.cat([x, hidden], 1)).sigmoid_().chunk(2, 1)
        new = self.candidate(torch.cat([x, r * hidden], 1)).tanh_()
        return (torch.lerp(new, hidden, z),)


class BothWays(nn.Module):
    def __init__(self, cell, states, inputs=8, width=16):
        super().__init__()
        self.cells = nn.ModuleList([cell(inputs, width), cell(inputs, width)])
        self.head = nn.Linear(2 * width, 10)
        self.states, self.width = states, width

    def forward(self, x):
        ends = []
        for cell, sequence in zip(self.cells, (x, x.flip(1)), strict=True):
            state = (torch.zeros(len(x), self.width),) * self.states
            for t in range(x.shape[1]):
                state = cell(sequence[:, t], state)
            ends.append(state[0])
        return self.head(torch.cat(ends, 1))


@program()
def bilstm_written_out():
    model = BothWays(LSTMCell, 2)
    return classify(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), (96, 8, 8))


@program()
def gru_written_out():
    model = BothWays(GRUCell, 1)
    return classify(model, torch.optim.RMSprop(model.parameters(), lr=1e-3), (96, 8, 8))


class Recurrent(nn.Module):
    """Whole layers are one operator, which is never run again; what comes before it can be."""

    def __init__(self, kind, **options):
        super().__init__()
        hidden = [it for _ in range(6) for it in (nn.Linear(64, 64), nn.Tanh())]
        self.before = nn.Sequential(nn.Linear(8, 64), *hidden, nn.Linear(64, 8))
        self.layers = kind(8, 16, 2, batch_first=True, dropout=0.2, **options)
        self.head = nn.Linear(16 * (2 if self.layers.bidirectional else 1), 10)

    def forward(self, x):
        return self.head(self.layers(self.before(x))[0].mean(1))


# What oneDNN's LSTM makes is never dropped, which leaves next to nothing to choose from: once in a
# thousand runs, by what operators happen to cost, 95% are too little.
@program(least_share=1.05)
def nn_bilstm():
    model = Recurrent(nn.LSTM, bidirectional=True)
    return classify(model, torch.optim.Adam(model.parameters(), lr=1e-3), (64, 8, 8))


@program()
def nn_gru():
    model = Recurrent(nn.GRU)
    return classify(model, torch.optim.Adam(model.parameters(), lr=1e-3), (64, 5, 8))


@program()
def nn_lstm_of_packed_sequences():
    model = nn.LSTM(8, 48, bidirectional=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        lengths = torch.randint(4, 8, (64,))
        sequences = [torch.randn(int(n), 8) for n in lengths]
        packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(model(packed)[0])
        optimizer.zero_grad()
        loss = outputs.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


@program()
def hidden_state_carried_over_steps():
    cell, head = LSTMCell(8, 16), nn.Linear(16, 4)
    model = nn.ModuleList([cell, head])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    state = (torch.zeros(256, 16), torch.zeros(256, 16))

    def step():
        nonlocal state
        state = tuple(it.detach() for it in state)
        loss = 0
        for _ in range(4):
            state = cell(torch.randn(256, 8), state)
            loss = loss + head(state[0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer], {"state": lambda: state})
