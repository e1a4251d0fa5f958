"""Containers and their limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.measure.cpu import container, cpu_quota
from epochcost.measure.kernel_files import ControlGroups


@pytest.mark.parametrize(
    ("files", "variables", "kind"),
    [
        ({}, {}, "none"),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": "engine=podman"}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "image.sif"}, "apptainer"),
        ({"run/systemd/container": "systemd-nspawn"}, {}, "systemd-nspawn"),
        ({"proc/1/cgroup": "0::/kubepods.slice/pod1"}, {}, "kubernetes"),
        ({"proc/1/cgroup": "0::/init.scope"}, {}, "none"),
    ],
)
def test_each_kind_leaves_its_traces(
    tmp_path: Path, files: dict[str, str], variables: dict[str, str], kind: str
) -> None:
    """The outermost name that says most is taken."""
    (tmp_path / "proc/1").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert container(tmp_path, variables) == kind


def test_a_system_without_proc_is_unknown(tmp_path: Path) -> None:
    """Nothing says that there is no container either."""
    assert container(tmp_path, {}) is None


def groups(root: Path, membership: str, files: dict[str, str]) -> ControlGroups:
    """A tree of control groups."""
    (root / "membership").write_text(membership)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return ControlGroups(root / "membership", root)


def test_the_smallest_quota_of_all_groups_above_counts(tmp_path: Path) -> None:
    """A pod without one within a slice of two and a half CPUs."""
    files = {"a.slice/cpu.max": "250000 100000", "a.slice/b/cpu.max": "max 100000"}
    assert cpu_quota(groups(tmp_path, "0::/a.slice/b\n", files)) == 2.5


def test_the_first_version_has_two_files(tmp_path: Path) -> None:
    """Quota and period, and -1 for no limit."""
    files = {
        "cpu/job/cpu.cfs_quota_us": "50000",
        "cpu/job/cpu.cfs_period_us": "100000",
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
    }
    assert cpu_quota(groups(tmp_path, "4:cpu,cpuacct:/job\n", files)) == 0.5


def test_no_group_and_no_limit_are_none(tmp_path: Path) -> None:
    """Neither is a quota of zero."""
    assert cpu_quota(ControlGroups(tmp_path / "absent", tmp_path)) is None
    assert cpu_quota(groups(tmp_path, "0::/\n", {"cpu.max": "max 100000"})) is None
