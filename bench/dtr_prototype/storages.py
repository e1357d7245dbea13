"""Operators, their tensors, the storages of these, and classes of storages that are evicted."""


class OutOfMemoryError(Exception):
    pass


class Op:
    def __init__(self, number, cost, inputs):
        self.number, self.cost, self.inputs = number, cost, inputs
        self.outputs, self.size = [], 0
        self.is_planned = False  # by a Replay


class Tensor:
    def __init__(self, op, storage):
        self.op, self.storage = op, storage
        self.is_there = False
        self.readers = []
        if all(other.op is not op for other in storage.tensors):
            storage.cost += op.cost
        storage.tensors.append(self)
        storage.references += 1


class Storage:
    def __init__(self, size):
        self.size = size
        self.tensors = []  # the first made it, the others are views
        self.cost = 0  # of the operators that made these
        self.is_there = self.is_constant = False
        self.locks = self.references = 0
        self.used = 0
        self.wanted, self.wanted_by = 0, 0  # by how many planned operators, and which is the next
        self.node, self.joined_with = None, 0  # in the class of evicted storages
        self.around = None  # nodes of the neighbours that are not there, where known

    def neighbours(self):
        for tensor in self.tensors:
            for other in tensor.op.inputs:
                if other.storage is not self:
                    yield other.storage
            for reader in tensor.readers:
                for other in reader.outputs:
                    if other.storage is not self:
                        yield other.storage

    # --- what it costs to lose it, with all that is evicted around it ---

    def price(self):
        if self.around is None:
            nodes = {other.node for other in self.neighbours() if not other.is_there}
            self.around = nodes - {None}
        return self.cost + sum(root.cost for root in {node.root() for node in self.around})

    def join_class(self):
        self.node, self.joined_with = Node(self.cost), self.cost
        for other in self.neighbours():
            other.around = None
            if not other.is_there and other.node is not None:
                self.node.merge(other.node)

    def leave_class(self, cost):
        if self.node is None:
            return
        self.node.root().cost -= cost
        self.node = None
        for other in self.neighbours():
            other.around = None


class Node:
    """Of disjoint sets; the root has the cost of its class."""

    def __init__(self, cost):
        self.cost, self.parent = cost, None

    def root(self):
        node = self
        while node.parent is not None:
            if node.parent.parent is not None:
                node.parent = node.parent.parent
            node = node.parent
        return node

    def merge(self, other):
        here, there = self.root(), other.root()
        if here is not there:
            there.parent = here
            here.cost += there.cost
