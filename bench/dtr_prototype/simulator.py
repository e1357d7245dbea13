"""A model of the DTR prototype's simulator (github.com/uwsampl/dtr-prototype, folder simrd).

Of its runtime with eager eviction and its heuristic with equivalence classes; written anew from
what these do. Each rule in which our engine differs can be exchanged for ours: see Rules.
"""

import sys
from dataclasses import dataclass, fields

from dtr_prototype.replay import Replay
from dtr_prototype.storages import Node, Op, OutOfMemoryError, Storage, Tensor

GRAIN = 512
INFINITE = float("inf")
sys.setrecursionlimit(1_000_000)  # depth first, and networks are long


@dataclass(frozen=True)
class Rules:
    """True: as the prototype has it. False: as our engine has it."""

    # What nobody holds, and was made again for an operator, stays until something evicts it.
    # Ours: it goes when the last operator that it was made for has run.
    dead_stay: bool = True
    # Used is what an operator is asked for with, before anything is made for it, in replays too.
    # Ours: what an operator of the program has read, when it has run; and what was made, then.
    used_when_asked: bool = True
    # What is missing is made input by input, each with all that it needs, and locked until it is
    # read. Ours: all of it in the order in which it was made first; it may have to go again.
    depth_first: bool = True
    # A view is an operator that has to run again, and its cost is part of its storage's.
    # Ours: it is its storage.
    views_cost: bool = True
    # What nothing can be made from any more still counts as evicted beside others, and if it is a
    # constant keeps its memory. Ours: it is forgotten.
    dead_count: bool = True
    # What is made takes its cost from its class, even where it has brought none: the outputs of an
    # operator that runs for the first time, a view that was added since. Ours: what it has brought.
    unborn_count: bool = True
    # At the end outputs are brought back one by one. Ours: as for an operator that reads them all;
    # which means something only with our order.
    outputs_in_turn: bool = True
    # A tensor takes its bytes. Ours: grains of 512.
    bytes_count: bool = True


RULES = tuple(field.name for field in fields(Rules))
PROTOTYPE = Rules()
OURS = Rules(**dict.fromkeys(RULES, False))


class Simulator:
    def __init__(self, budget, rules=PROTOTYPE, most_slowdown=INFINITE):
        self.budget, self.rules, self.most_slowdown = budget, rules, most_slowdown
        self.held = self.most_held = 0
        self.base, self.now = 0, 1
        self.least_age = 0 if rules.used_when_asked else 1
        self.pool = {}  # what may be evicted, in the order in which it may
        self.tensors = {}  # by number
        self.ops = 0

    def run(self, events):
        """Total time over the time without a budget."""
        self.base = sum(event[1] for event in events if event[0] == "call")
        for kind, *what in events:
            getattr(self, kind)(*what)
        return self.now / self.base

    # --- the program ---

    def constant(self, tensor, size):
        self.make(self.new_op(0, [], [(tensor, size, -1)]), is_first=True)
        storage = self.tensors[tensor].storage
        storage.is_constant = True
        self.lock(storage)

    def call(self, cost, inputs, outputs):
        self.make(self.new_op(cost, [self.tensors[i] for i in inputs], outputs), is_first=True)

    def get(self, tensor):
        self.tensors[tensor].storage.references += 1

    def release(self, tensor):
        storage = self.tensors[tensor].storage
        storage.references -= 1
        if storage.references > 0:
            return
        if storage.is_there and not storage.is_constant:
            self.evict(storage)
        if not self.rules.dead_count:
            self.forget(storage)

    def outputs(self, tensors):
        tensors = [self.tensors[i] for i in tensors]
        if not self.rules.outputs_in_turn and not self.rules.depth_first:
            Replay(self, tensors).run()
            return
        for tensor in tensors:
            if not tensor.is_there and self.rules.depth_first:
                self.make(tensor.op)
            elif not tensor.is_there:
                Replay(self, [tensor]).run()
            self.lock(tensor.storage)

    def new_op(self, cost, inputs, outputs):
        op = Op(self.ops, cost, inputs)
        self.ops += 1
        for number, size, alias in outputs:
            if alias >= 0 and not self.rules.views_cost:
                self.tensors[number] = inputs[alias]
                inputs[alias].storage.references += 1
                continue
            if not self.rules.bytes_count:
                size = -(-max(size, 1) // GRAIN) * GRAIN
            storage = inputs[alias].storage if alias >= 0 else Storage(size)
            self.tensors[number] = Tensor(op, storage)
            op.outputs.append(self.tensors[number])
            op.size += size if alias < 0 else 0
        if self.rules.unborn_count:
            self.link(op)
            for output in op.outputs:
                if not output.storage.is_there and output.storage.node is None:
                    output.storage.node = Node(0)
        return op

    def link(self, op):
        if not op.outputs:
            return
        for tensor in op.inputs:
            tensor.readers.append(op)
        for tensor in op.inputs + op.outputs:
            tensor.storage.around = None

    # --- making, for the first time or again ---

    def make(self, op, is_first=False):
        if self.rules.used_when_asked:
            self.use(op.inputs)
        if self.rules.depth_first:
            self.make_inputs(op)
        else:
            if not all(tensor.is_there for tensor in op.inputs):
                Replay(self, op.inputs).run()
            for tensor in op.inputs:
                self.lock(tensor.storage)
        self.run_op(op)
        for tensor in op.inputs:
            self.unlock(tensor.storage)
        if is_first:
            if not self.rules.unborn_count:
                self.link(op)
            self.use(op.outputs if self.rules.used_when_asked else op.inputs + op.outputs)
        made = [tensor.storage for tensor in op.outputs]
        self.drop_dead(t.storage for t in op.inputs if t.storage not in made)

    def make_inputs(self, op):
        missing = [tensor for tensor in op.inputs if not tensor.is_there]
        for tensor in op.inputs:
            if tensor.is_there:
                self.lock(tensor.storage)
        for tensor in missing:
            if not tensor.is_there:  # it may have come with another
                self.make(tensor.op)
            self.lock(tensor.storage)

    def use(self, tensors):
        for tensor in tensors:
            tensor.storage.used = self.now

    def run_op(self, op):
        while self.held + op.size > self.budget:
            self.evict(self.victim())
        self.now += op.cost
        if self.now > self.most_slowdown * self.base:
            raise OutOfMemoryError
        self.held += op.size
        self.most_held = max(self.most_held, self.held)
        for tensor in op.outputs:
            storage = tensor.storage
            is_view = storage.tensors[0] is not tensor
            if tensor.is_there:
                self.held -= 0 if is_view else storage.size  # it was there: made twice
                continue
            tensor.is_there = True
            if storage.is_there:
                continue
            storage.is_there = True
            storage.leave_class(storage.cost if self.rules.unborn_count else storage.joined_with)
            self.pool[storage] = None
            if not self.rules.used_when_asked:
                storage.used = self.now

    # --- letting go ---

    def lock(self, storage):
        if storage.locks == 0:
            del self.pool[storage]
        storage.locks += 1

    def unlock(self, storage):
        storage.locks -= 1
        if storage.locks == 0:
            self.pool[storage] = None

    def victim(self):
        lowest, found = INFINITE, None
        for storage in self.pool:
            price = self.price(storage)
            span = storage.size * max(self.now - storage.used, self.least_age)
            score = price / span if span > 0 else INFINITE
            if score <= lowest:
                lowest, found = score, storage
            if score == 0:
                break
        if found is None:
            raise OutOfMemoryError
        return found

    def price(self, storage):
        price = storage.price()
        return price if storage.wanted == 0 else self.replay.price(storage, price)

    def evict(self, storage):
        del self.pool[storage]
        self.held -= storage.size
        storage.is_there = False
        for tensor in storage.tensors:
            tensor.is_there = False
        storage.join_class()

    def drop_dead(self, storages):
        if self.rules.dead_stay:
            return
        for storage in storages:
            if storage.is_there and not storage.references + storage.locks + storage.wanted:
                self.evict(storage)

    def forget(self, storage):
        """Where nothing is made from it any more it goes, perhaps with what it was made from."""
        readers = [reader for tensor in storage.tensors for reader in tensor.readers]
        is_read = any(o.storage is not storage for reader in readers for o in reader.outputs)
        if storage.references > 0 or is_read:
            return
        if storage.is_there:
            if storage.is_constant:
                self.unlock(storage)
            self.evict(storage)
        storage.leave_class(storage.joined_with)
        for op in {tensor.op for tensor in storage.tensors}:
            op.outputs = [output for output in op.outputs if output.storage is not storage]
            if op.outputs:
                continue
            for tensor in op.inputs:
                tensor.readers = [reader for reader in tensor.readers if reader is not op]
            for tensor in op.inputs:
                self.forget(tensor.storage)


def total_time(events, budget, rules=PROTOTYPE, most_slowdown=INFINITE):
    """As Simulator.run(); infinite where it runs out of memory."""
    try:
        return Simulator(budget, rules, most_slowdown).run(events)
    except OutOfMemoryError:
        return INFINITE
