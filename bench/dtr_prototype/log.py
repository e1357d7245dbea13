"""Reads a log of the DTR prototype, as its own parser does: a mutation is a copy."""

import gzip
import json
from pathlib import Path


class _Program:
    def __init__(self):
        self.events = []
        self.names = {}
        self.sizes, self.references = [], []  # by tensor

    def new(self, size):
        self.sizes.append(size)
        self.references.append(1)
        return len(self.sizes) - 1

    def get(self, tensor):
        self.references[tensor] += 1
        self.events.append(("get", tensor))

    def release(self, tensor):
        self.references[tensor] -= 1
        self.events.append(("release", tensor))

    def constant(self, line, lines):
        tensor = self.names[line["NAME"]] = self.new(int(next(lines)["MEMORY"]))
        self.events.append(("constant", tensor, self.sizes[tensor]))

    def call(self, line, lines):
        inputs = [self.names[name] for name in line["ARGS"]]
        outputs = []
        for name in line["RESULT"]:
            size, alias = int(next(lines)["MEMORY"]), int(next(lines)["ALIAS"])
            self.names[name] = self.new(self.sizes[inputs[alias]] if alias >= 0 else size)
            outputs.append((self.names[name], size, alias))
        self.events.append(("call", int(line["TIME"]), inputs, outputs))

    def mutate(self, line):
        inputs = [self.names[name] for name in line["ARGS"]]
        sizes = [self.sizes[inputs[i]] for i in line["MUTATE"]]
        outputs = [(self.new(size), size, -1) for size in sizes]
        self.events.append(("call", int(line["TIME"]), inputs, outputs))
        for i, output in zip(line["MUTATE"], outputs, strict=True):
            self.release(self.names[line["ARGS"][i]])
            self.names[line["ARGS"][i]] = output[0]

    def copy(self, line):
        if line["DST"] in self.names:
            self.release(self.names[line["DST"]])
        self.names[line["DST"]] = self.names[line["SRC"]]
        self.get(self.names[line["SRC"]])

    def finish(self):
        tensors = dict.fromkeys(self.names.values())
        self.events.append(("outputs", [t for t in tensors if self.references[t] > 0]))
        return self.events


def read_log(path):
    """[(kind, ...)] with tensors as numbers: constant, call, get, release, and last the outputs.

    An output of a call is (tensor, bytes, which input it is a view of or -1).
    """
    path = Path(path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [json.loads(line) for line in text.splitlines()]
    start = next((i for i, x in enumerate(lines) if x.get("ANNOTATION") == "START"), -1)
    lines = iter(lines[start + 1 :])
    program = _Program()
    for line in lines:
        kind = line["INSTRUCTION"]
        if kind == "CONSTANT":
            program.constant(line, lines)
        elif kind == "CALL":
            program.call(line, lines)
        elif kind == "MUTATE":
            program.mutate(line)
        elif kind in ("COPY", "COPY_FROM"):
            program.copy(line)
        elif kind == "RELEASE" and line["NAME"] in program.names:
            program.release(program.names[line["NAME"]])
        elif kind not in ("RELEASE", "ANNOTATE"):
            raise ValueError(f"{path}: unknown instruction {kind}")
    return program.finish()


def peak_of(events):
    """Bytes that the program holds at most without a budget."""
    held = most_held = 0
    storages, references, sizes = {}, {}, {}  # a storage is known by the tensor that came first
    for kind, *what in events:
        if kind == "constant":
            outputs = [(*what, -1)]
        elif kind == "call":
            _, inputs, outputs = what
        else:
            outputs = []
        for tensor, size, alias in outputs:
            storage = storages[tensor] = storages[inputs[alias]] if alias >= 0 else tensor
            references[storage] = references.get(storage, 0) + 1
            sizes.setdefault(storage, size)
            held += size if alias < 0 else 0
        most_held = max(most_held, held)
        if kind in ("get", "release"):
            storage = storages[what[0]]
            references[storage] += 1 if kind == "get" else -1
            held -= 0 if references[storage] else sizes[storage]
    return most_held
