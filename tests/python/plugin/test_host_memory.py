"""What a process may have of the host's memory: what is left to the control groups that it is in,
and to its own limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from coop import _plugin  # noqa: E402
from coop.cli import memory  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
GIB = 1 << 30


def group(folder, limit, used, files, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, used), strict=False):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {files}\n")


def limits(memberships, mounted):
    """(most, left) of each group that has one."""
    _plugin.load()
    found = torch.ops.coop.limits_of_groups(str(memberships), str(mounted))
    return list(zip(found[::2], found[1::2], strict=True))


SECOND = ("memory.max", "memory.current", "inactive_file")
FIRST = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@pytest.mark.parametrize(
    ("memberships", "below", "names"),
    [("0::/user/job", "", SECOND), ("4:cpu:/\n3:freezer,memory:/user/job", "memory", FIRST)],
)
def test_a_group_and_those_above_it(tmp_path, memberships, below, names):
    (tmp_path / "cgroup").write_text(memberships + "\n")
    mounted = tmp_path / "mounted"
    group(mounted / below / "user", 8 * GIB, 3 * GIB, GIB, names)
    group(mounted / below / "user/job", 4 * GIB, GIB, 0, names)
    assert limits(tmp_path / "cgroup", mounted) == [(4 * GIB, 3 * GIB), (8 * GIB, 6 * GIB)]


def test_a_container_whose_group_has_another_name_outside(tmp_path):
    for path in ("/kubepods/pod1", "/../pod1", "/"):
        (tmp_path / "cgroup").write_text(f"0::{path}\n")
        group(tmp_path / "mounted", 2 * GIB, GIB, 0, SECOND)
        assert limits(tmp_path / "cgroup", tmp_path / "mounted") == [(2 * GIB, GIB)]


def test_a_group_that_has_more_than_it_may(tmp_path):
    """Its limit was lowered; and files that can go are not more than there is."""
    (tmp_path / "cgroup").write_text("0::/\n")
    group(tmp_path / "mounted", GIB, 2 * GIB, 0, SECOND)
    assert limits(tmp_path / "cgroup", tmp_path / "mounted") == [(GIB, 0)]
    group(tmp_path / "mounted", 4 * GIB, GIB, 2 * GIB, SECOND)
    assert limits(tmp_path / "cgroup", tmp_path / "mounted") == [(4 * GIB, 4 * GIB)]


def test_no_limit_and_no_groups(tmp_path):
    (tmp_path / "cgroup").write_text("0::/\n")
    group(tmp_path / "mounted", "max", GIB, 0, SECOND)
    assert limits(tmp_path / "cgroup", tmp_path / "mounted") == []
    assert limits(tmp_path / "none", tmp_path / "mounted") == []
    (tmp_path / "cgroup").write_text("nonsense\n\n:\n0:\n")
    assert limits(tmp_path / "cgroup", tmp_path / "mounted") == []


FREE = """
import os, resource, torch
from coop.cli import memory
cpu = torch.device("cpu")
taken = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
before = memory.free_bytes(cpu)
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30), -1))
print(before, memory.free_bytes(cpu), torch.ops.coop.free_bytes(cpu))
"""


def test_ulimit_counts():
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", FREE]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    before, budget, free = map(int, done.stdout.split())
    assert before > GIB > free > 0.9 * GIB
    assert 0.8 * GIB < budget < 0.9 * GIB


def test_of_several_processes_each_has_its_share(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.ops.coop, "free_bytes", lambda device: 10 * GIB)
    assert memory.free_bytes(cpu) == 9 * GIB
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    assert memory.free_bytes(cpu) == 3 * GIB
    cuda = torch.device("cuda", 0)
    assert memory.free_bytes(cuda) == 9 * GIB
    monkeypatch.setattr(torch.ops.coop, "free_bytes", lambda device: 4 * GIB)
    assert memory.free_bytes(cuda) == 7 * GIB // 2
