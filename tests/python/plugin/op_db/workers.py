"""Operators run in processes of their own: a crash takes one of them along, and is reported."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from op_db.cases import ALL, DEVICE, Selection, cases_of, operators
from op_db.runs import KINDS, Report, prepare_process

MOST_SECONDS = 300  # for one case


@dataclass(frozen=True)
class Task:
    op: str
    dtype: str
    kind: str = "stress"
    selection: Selection = ALL

    def __str__(self) -> str:
        mode = [self.selection.variant] if self.selection.variant else []
        return "-".join([self.op, self.dtype, self.kind, *mode])


def _run(task: Task, skipped: list[str], connection: Connection) -> Report:
    report = Report()
    for case, sample in cases_of(task.op, task.dtype, task.selection):
        if str(case) in skipped:
            continue
        connection.send(str(case))
        report.add(case, operators()[case.op], sample, KINDS[task.kind])
    return report


def _work(connection: Connection) -> None:
    prepare_process()
    while True:
        try:
            order = connection.recv()
        except EOFError:  # nobody is left to work for
            return
        connection.send(_run(*order, connection))


@dataclass
class _Worker:
    process: multiprocessing.Process
    connection: Connection
    task: Task | None = None
    at: str = ""  # the case that runs
    since: float = 0

    def begin(self, task: Task, skipped: list[str]) -> None:
        self.task, self.at, self.since = task, f"{task.op} {task.dtype}", time.monotonic()
        self.connection.send((task, skipped))


@dataclass
class Workers:
    count: int = field(default_factory=lambda: os.cpu_count() or 1)

    def __post_init__(self) -> None:
        self._context = multiprocessing.get_context("spawn" if DEVICE == "cuda" else "forkserver")
        if DEVICE == "cpu":
            self._context.set_forkserver_preload(["op_db.preloaded"])
        self._workers: list[_Worker] = []
        self._waiting: deque[Task] = deque()
        self._crashes: dict[Task, list[str]] = {}  # the cases
        self._crash_reports: dict[Task, list[str]] = {}
        self.reports: dict[Task, Report] = {}

    def submit(self, tasks: Iterable[Task]) -> None:
        self._waiting.extend(tasks)

    def report(self, task: Task) -> Report:
        """Waits for it, and lets others run meanwhile."""
        while task not in self.reports:
            self._step()
        return self.reports[task]

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
        self._workers.clear()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours))

    def _step(self) -> None:
        while len(self._workers) < self.count and self._waiting:
            self._start()
        for worker in self._workers:
            if worker.task is None and self._waiting:
                task = self._waiting.popleft()
                worker.begin(task, self._crashes.get(task, []))
        busy = {worker.connection: worker for worker in self._workers if worker.task}
        for connection in wait(list(busy), timeout=5):
            self._hear(busy[connection])
        for worker in busy.values():
            if time.monotonic() - worker.since > MOST_SECONDS:
                worker.process.kill()  # heard of as a crash

    def _hear(self, worker: _Worker) -> None:
        try:
            message = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            self._bury(worker)
            return
        worker.since = time.monotonic()
        if isinstance(message, str):
            worker.at = message
            return
        message.differing += self._crash_reports.get(worker.task, [])
        self.reports[worker.task] = message
        worker.task = None

    def _bury(self, worker: _Worker) -> None:
        worker.process.join()
        self._workers.remove(worker)
        self._crashes.setdefault(worker.task, []).append(worker.at)
        why = f"{worker.at}: the process died (exit code {worker.process.exitcode})"
        self._crash_reports.setdefault(worker.task, []).append(why)
        if len(self._crashes[worker.task]) < 5 and "--sample" in worker.at:
            self._waiting.appendleft(worker.task)  # the rest of it
        else:
            self.reports[worker.task] = Report(differing=self._crash_reports[worker.task])
