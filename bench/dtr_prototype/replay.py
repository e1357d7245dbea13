"""How our engine brings back what is missing (Note [Replay] in src/core/engine/replay.hpp)."""

import heapq

from dtr_prototype.storages import OutOfMemoryError

RUNS_IN_CIRCLES = 3
MOST_RUNS = 1024


class Replay:
    def __init__(self, simulator, targets):
        self.simulator, self.targets = simulator, targets
        self.kept = []  # targets that are there
        self.agenda, self.planned = [], []
        self.runs = {}  # how often, by operator
        self.at, self.is_in_circles = 0, False
        simulator.replay = self

    def run(self):
        for tensor in self.targets:
            if tensor.is_there:
                self.keep(tensor)
        try:
            for tensor in self.targets:
                self.plan(tensor)
            self.run_plan()
        except OutOfMemoryError:
            if len(self.targets) == 1:
                raise
            self.run_one_by_one()
        self.abandon_plan()
        for storage in self.kept:
            self.simulator.unlock(storage)
            if not self.simulator.rules.used_when_asked:
                storage.used = self.simulator.now

    def run_one_by_one(self):
        for tensor in sorted(self.targets, key=lambda tensor: tensor.op.number):
            self.abandon_plan()
            self.plan(tensor)
            self.run_plan()

    def keep(self, tensor):
        self.simulator.lock(tensor.storage)
        self.kept.append(tensor.storage)

    # What is still going to be read is the last to go, and what is read soonest last of all.
    def price(self, storage, price):
        distance = max(0, storage.wanted_by - self.at) + 1
        if not self.is_in_circles:
            return price * (1e3 + 1e6 / distance**2)
        storage.used = self.simulator.now
        return 1e15 / distance**2

    def plan(self, tensor):
        stack = [tensor]
        while stack:
            tensor = stack.pop()
            op = tensor.op
            if tensor.is_there or op.is_planned:
                continue
            op.is_planned = True
            heapq.heappush(self.agenda, (op.number, op))
            self.planned.append(op)
            for source in op.inputs:
                storage = source.storage
                is_sooner = storage.wanted == 0 or op.number < storage.wanted_by
                storage.wanted_by = op.number if is_sooner else storage.wanted_by
                storage.wanted += 1
                stack.append(source)

    def run_plan(self):
        while self.agenda:
            op = self.agenda[0][1]
            is_needed = any(self.is_needed(tensor) for tensor in op.outputs)
            missing = [tensor for tensor in op.inputs if is_needed and not tensor.is_there]
            for tensor in missing:  # it had to go again
                self.plan(tensor)
            if missing:
                continue
            heapq.heappop(self.agenda)
            if is_needed:
                self.run_op(op)
            else:
                self.unplan(op)

    def is_needed(self, tensor):
        is_read = tensor.storage.wanted > 0 or tensor in self.targets
        return is_read and not tensor.is_there

    def run_op(self, op):
        self.runs[op] = self.runs.get(op, 0) + 1
        if self.runs[op] == RUNS_IN_CIRCLES:
            self.is_in_circles = True
        if self.runs[op] > MOST_RUNS:
            raise OutOfMemoryError
        self.at = op.number
        if self.simulator.rules.used_when_asked:
            self.simulator.use(op.inputs)
        for tensor in op.inputs:
            self.simulator.lock(tensor.storage)
        try:
            self.simulator.run_op(op)
        finally:
            for tensor in op.inputs:
                self.simulator.unlock(tensor.storage)
        for tensor in op.outputs:
            if tensor in self.targets and tensor.storage not in self.kept:
                self.keep(tensor)
        self.unplan(op)
        self.simulator.drop_dead(tensor.storage for tensor in op.outputs)

    def unplan(self, op):
        op.is_planned = False
        for tensor in op.inputs:
            storage = tensor.storage
            storage.wanted -= 1
            readers = (reader for t in storage.tensors for reader in t.readers)
            storage.wanted_by = min((r.number for r in readers if r.is_planned), default=0)
        self.simulator.drop_dead(tensor.storage for tensor in op.inputs)

    def abandon_plan(self):
        for op in self.planned:
            if op.is_planned:
                self.unplan(op)
        self.agenda, self.planned, self.runs = [], [], {}
