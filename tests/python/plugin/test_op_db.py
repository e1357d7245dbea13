"""Every operator of PyTorch's own list: what it leaves when everything is evicted after every
operator is what it leaves without coop, to the bit.

One test is an operator and a type; of a failure, each line begins with the arguments of
`python -m op_db` that run that case alone.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from op_db.cases import ALL, MODES, Selection  # noqa: E402
from op_db.made import EVICTED  # noqa: E402
from op_db.table import made_bytes  # noqa: E402
from op_db.workers import Task, Workers  # noqa: E402

SCALE = os.environ.get("COOP_TEST_SCALE")
SEED = int(os.environ.get("COOP_TEST_SEED", "0"))
# Of the other types a few samples of each operator, unless the tests run at full size.
FEW = ALL if SCALE == "full" else Selection(most=1, seed=SEED)
FLOAT32 = ("stress", "float32", ALL)
SWEEPS = [
    FLOAT32,
    ("older", "float32", FEW),
    ("audit", "float32", FEW),
    *(("stress", "float32", replace(FEW, variant=mode)) for mode in MODES),
    *(("audit", "float32", replace(FEW, variant=mode)) for mode in MODES),
    *(("stress", dtype, FEW) for dtype in ("bfloat16", "int64", "bool", "complex64")),
]
if SCALE == "slice":
    SWEEPS = [FLOAT32]


def supported(config) -> dict[str, list[str]]:
    """The operators and their types. PyTorch's list changes settings of the process that loads it,
    and takes seconds to load: another process does, once for each version."""
    key = f"op_db/{torch.__version__}"
    known = config.cache.get(key, None)
    if known is None:
        python = [str(Path(__file__).parent), *sys.path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(python)}
        command = [sys.executable, "-m", "op_db", "--list"]
        known = json.loads(subprocess.check_output(command, env=environment, text=True))
        config.cache.set(key, known)
    return known


def pytest_generate_tests(metafunc):
    if "task" not in metafunc.fixturenames:
        return
    tasks = [
        Task(name, dtype, kind, selection)
        for name, has in supported(metafunc.config).items()
        for kind, dtype, selection in SWEEPS
        if dtype in has
    ]
    metafunc.parametrize("task", tasks, ids=map(str, tasks))


@pytest.fixture(scope="module")
def workers(request):
    """All that was asked for runs side by side; each test waits for its own."""
    items = (item for item in request.session.items if item.path == request.path)
    tasks = [item.callspec.params["task"] for item in items if hasattr(item, "callspec")]
    workers = Workers()
    workers.submit(tasks)
    yield workers
    workers.close()


def test_what_it_leaves_is_the_same(task, workers):
    report = workers.report(task)
    assert not report.differing, f"seed {task.selection.seed}\n" + "\n".join(report.differing)
    if report.cases == 0 and report.not_counted:
        pytest.skip(f"no sample of it runs in plain PyTorch: {report.not_counted[0]}")
    # All that may be evicted was: it is not by hiding.
    may_go = 0 if task.kind == "audit" else report.made.get("none", 0)
    assert report.made.get(EVICTED, 0) == may_go


def test_nearly_all_were_counted_and_most_bytes_evicted(workers, request):
    """What PyTorch cannot run here (jiterator, `empty` without a value) is left out, no more."""
    reports = [
        it
        for task, it in workers.reports.items()
        if (task.kind, task.dtype, task.selection) == FLOAT32
    ]
    if len(reports) < 600:
        pytest.skip("only some of the operators were asked for")
    assert sum(it.cases > 0 for it in reports) >= 640
    made = sum(made_bytes(it.made) for it in reports)
    assert sum(it.made.get(EVICTED, 0) for it in reports) >= 0.9 * made
