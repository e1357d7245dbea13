"""However a program ends, it ends as it does without `coop run`."""

import os
import signal
import subprocess

import pytest
from command_line import COOP, PYTHON, environment, run

BUDGET = ["run", "--budget", "16MiB"]

# Without PyTorch: what `coop run` does about these has nothing to do with it, and they are fast so.
ENDINGS = {
    "nothing": "print('done')",
    "exit": "import sys; sys.exit()",
    "exit with a number": "import sys; sys.exit(7)",
    "exit with None": "import sys; sys.exit(None)",
    "exit with a text": "import sys; sys.exit('it cannot go on')",
    "exit with a large number": "raise SystemExit(1 << 40)",
    "error": "def fail():\n    1 / 0\n\nfail()\n",
    "error after an error": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['x']\n",
    "no Python": "def (",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "crash": "import os; os.abort()",
    "exit at once": "import os; os._exit(9)",
    "an import that fails": "import no_such_module",
    "reads what is not there": "print(input())",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_the_same_end(tmp_path, name):
    (tmp_path / "script.py").write_text(ENDINGS[name])
    plain = run([*PYTHON, "script.py"], tmp_path)
    coop = run([*COOP, *BUDGET, "script.py"], tmp_path)
    assert (coop.code, coop.out, coop.err) == (plain.code, plain.out, plain.err)


GOES_ON = {
    "thread": (
        "import threading\n"
        "print('before')\n"
        "thread = threading.Thread(target=__import__, args=['torch'])\n"
        "thread.start()\nthread.join()\nprint('goes on')\n"
    ),
    "tries again": (
        "print('before')\n"
        "try:\n    import torch\nexcept BaseException:\n    pass\nimport torch\nprint('goes on')\n"
    ),
    "pytest": "import torch\ndef test_it(): pass\n",
}


@pytest.mark.parametrize("name", GOES_ON)
def test_a_budget_that_cannot_begin_is_the_end(tmp_path, name):
    """Of a program that goes on, or tells of it, when `import torch` raises SystemExit."""
    torch_is_there()
    (tmp_path / "script.py").write_text(GOES_ON[name])
    start = ["-m", "pytest", "-p", "no:cacheprovider"] if name == "pytest" else []
    done = run([*COOP, "run", "--budget", "100", *start, "script.py"], tmp_path)
    assert done.code == 2, done.err
    assert done.err.startswith("coop run: error: a pool of 100 bytes cannot be made")
    assert done.err.count("\n") == 1
    if name != "pytest":
        assert done.out == "before\n"


FAILS_INSIDE = """
import atexit
import torch
atexit.register(print, "registered before the end")
def deeper(x):
    with torch.no_grad():
        return (x * 2).view(3)
x = torch.ones(1 << 20)
try:
    deeper(x)
except RuntimeError:
    deeper(x * 2)
"""


def test_a_traceback_has_nothing_of_ours(tmp_path):
    torch_is_there()
    (tmp_path / "script.py").write_text(FAILS_INSIDE)
    plain = run([*PYTHON, "script.py"], tmp_path)
    coop = run([*COOP, *BUDGET, "script.py"], tmp_path)
    assert (coop.code, coop.out) == (plain.code, plain.out) == (1, "registered before the end\n")
    assert "During handling of the above exception" in plain.err
    assert coop.err.splitlines() == [*plain.err.splitlines(), *coop.lines]
    assert len(coop.lines) == 5


FAILS_IN_THREADS = """
import threading
import torch
def deeper(x):
    return (x * 2).view(3)
class Deeper(threading.Thread):
    def run(self):
        deeper(torch.ones(10))
for thread in (threading.Thread(target=deeper, args=[torch.ones(10)]), Deeper()):
    thread.start()
    thread.join()
thread.start()
"""


def test_nor_has_one_of_a_thread(tmp_path):
    torch_is_there()
    (tmp_path / "script.py").write_text(FAILS_IN_THREADS)
    plain = run([*PYTHON, "script.py"], tmp_path)
    coop = run([*COOP, *BUDGET, "script.py"], tmp_path)
    assert coop.code == plain.code == 1
    assert plain.err.count("Traceback") == 3
    assert coop.err.splitlines() == [*plain.err.splitlines(), *coop.lines]


BROKEN_TORCH = {
    "error": "raise ValueError('broken')",
    "import": "import no_such_module",
    "half loaded": "from torch import no_such_name",
    "no Python": "def (",
    "exit": "import sys; sys.exit(4)",
}


@pytest.mark.parametrize("name", BROKEN_TORCH)
def test_nor_has_one_of_an_import_of_torch_that_fails(tmp_path, name):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(BROKEN_TORCH[name])
    (tmp_path / "script.py").write_text("try:\n    import torch\nexcept OSError:\n    pass\n")
    plain = run([*PYTHON, "script.py"], tmp_path)
    coop = run([*COOP, *BUDGET, "script.py"], tmp_path)
    assert (coop.code, coop.out, coop.err) == (plain.code, plain.out, plain.err)
    assert plain.code == (4 if name == "exit" else 1)


INTERRUPTED = """
import os, signal, sys
import torch
x = torch.ones(1 << 20)
try:
    os.kill(os.getppid(), signal.SIGUSR1)  # ready
    while True:
        x = x * 1.5
except KeyboardInterrupt:
    torch.save(x.shape, "saved.pt")
    raise
"""


def test_ctrl_c_leaves_the_program_time_to_save(tmp_path):
    torch_is_there()
    (tmp_path / "script.py").write_text(INTERRUPTED)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        program = subprocess.Popen(
            [*COOP, *BUDGET, "script.py"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert signal.sigtimedwait({signal.SIGUSR1}, 100) is not None
        os.kill(program.pid, signal.SIGINT)  # the very process that was started
        said = program.communicate(timeout=100)[1]
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    assert program.returncode == -signal.SIGINT, said
    assert "KeyboardInterrupt\n" in said
    assert len([line for line in said.splitlines() if line.startswith("coop: ")]) == 5
    assert (tmp_path / "saved.pt").exists()


def torch_is_there():
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
