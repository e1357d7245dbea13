"""What a program may have where nobody says: what is left to the control groups that it is in."""

import pytest
from coop.cli.memory import _left_to_groups

GIB = 1 << 30


def group(folder, limit, used, files, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, used), strict=False):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {files}\n")


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
    left = _left_to_groups(tmp_path / "cgroup", mounted)
    assert left == [3 * GIB, 6 * GIB]


def test_a_container_whose_group_has_another_name_outside(tmp_path):
    (tmp_path / "cgroup").write_text("0::/kubepods/pod1\n")
    group(tmp_path / "mounted", 2 * GIB, GIB, 0, SECOND)
    assert _left_to_groups(tmp_path / "cgroup", tmp_path / "mounted") == [GIB]


def test_no_limit_and_no_groups(tmp_path):
    (tmp_path / "cgroup").write_text("0::/\n")
    group(tmp_path / "mounted", "max", GIB, 0, SECOND)
    assert _left_to_groups(tmp_path / "cgroup", tmp_path / "mounted") == []
    assert _left_to_groups(tmp_path / "none", tmp_path / "mounted") == []
