"""The memory that a process may use if a control group limits it."""

from __future__ import annotations

from pathlib import Path

import psutil

from epochcost.measure.cpu import ControlGroups
from epochcost.measure.memory import cgroup_limits_bytes, memory_limit_bytes


def group(root: Path, path: str, name: str, text: str) -> None:
    """Write a limit into a group's file as the kernel does."""
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text + "\n")


def limits(root: Path, membership: str) -> tuple[int, ...]:
    """The memory limits of a process in these groups."""
    (root / "membership").write_text(membership)
    return cgroup_limits_bytes(ControlGroups(root / "membership", root))


def test_every_group_above_limits_too(tmp_path: Path) -> None:
    """The limit of a slice also holds for a service within it that has no limit."""
    group(tmp_path, "batch.slice", "memory.max", "4294967296")
    group(tmp_path, "batch.slice/job.service", "memory.max", "max")
    assert limits(tmp_path, "0::/batch.slice/job.service\n") == (4 * 2**30,)


def test_a_container_sees_its_own_limit_at_the_root(tmp_path: Path) -> None:
    """In a container the limit is at the root, although the path is the host's."""
    group(tmp_path, ".", "memory.max", "1073741824")
    assert limits(tmp_path, "0::/docker/3f1\n") == (2**30,)


def test_the_first_version_has_files_of_its_own(tmp_path: Path) -> None:
    """Version 1 has a separate tree for memory, and a very large number for no limit."""
    group(tmp_path, "memory/job", "memory.limit_in_bytes", "2147483648")
    group(tmp_path, "memory", "memory.limit_in_bytes", "9223372036854771712")
    found = limits(tmp_path, "5:cpu,cpuacct:/job\n4:memory:/job\n")
    assert found == (2 * 2**30, 9223372036854771712)


def test_no_control_group_is_no_limit(tmp_path: Path) -> None:
    """Without control groups there is no limit."""
    assert cgroup_limits_bytes(ControlGroups(tmp_path / "absent", tmp_path)) == ()
    assert 0 < memory_limit_bytes() <= psutil.virtual_memory().total
