"""The CPU as the kernel's files describe it."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.measure.cpu import container, cpu_model, cpu_quota, processor, throttle_count
from epochcost.measure.kernel_files import ControlGroups
from epochcost.results.environment import Processor


def write(root: Path, files: dict[str, object]) -> Path:
    """A tree of small files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_two_sockets_with_four_nodes(tmp_path: Path) -> None:
    """Sockets are the distinct packages of the CPUs; limits are the widest of all CPUs, in Hz."""
    files: dict[str, object] = {"cpu/cpufreq/boost": 1}
    for number in range(4):
        cpu = f"cpu/cpu{number}"
        files |= {
            f"{cpu}/topology/physical_package_id": number // 2,
            f"{cpu}/cpufreq/scaling_governor": "performance",
            f"{cpu}/cpufreq/scaling_min_freq": 800_000,
            f"{cpu}/cpufreq/scaling_max_freq": 3_500_000 + number,
            f"node/node{number}/cpulist": number,
        }
    assert processor(write(tmp_path, files)) == Processor(
        sockets=2,
        numa_nodes=4,
        governor="performance",
        lowest_frequency_hertz=800_000_000,
        highest_frequency_hertz=3_500_003_000,
        turbo=True,
    )


@pytest.mark.parametrize(("no_turbo", "turbo"), [(0, True), (1, False)])
def test_intels_driver_says_the_opposite(tmp_path: Path, no_turbo: int, turbo: bool) -> None:
    """no_turbo 1 is turbo off."""
    root = write(tmp_path, {"cpu/intel_pstate/no_turbo": no_turbo})
    assert processor(root).turbo is turbo


def test_a_machine_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    """No zero, no guess."""
    assert processor(tmp_path) == Processor()
    assert throttle_count(tmp_path) is None


def test_throttling_is_counted_over_cores_and_packages(tmp_path: Path) -> None:
    """A count that does not rise during a trial is no throttling, so zero is an answer."""
    files = {
        "cpu/cpu0/thermal_throttle/core_throttle_count": 0,
        "cpu/cpu1/thermal_throttle/core_throttle_count": 2,
        "cpu/cpu0/thermal_throttle/package_throttle_count": 5,
    }
    assert throttle_count(write(tmp_path, files)) == 7


def test_a_name_without_a_number_gets_family_and_model(tmp_path: Path) -> None:
    """Two generations that a hypervisor gives one name are two CPUs."""
    text = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
    text += text.replace(": 0", ": 1").replace(": 25", ": 26")
    root = write(tmp_path, {"cpuinfo": text})
    assert cpu_model(root / "cpuinfo") == "AMD EPYC (family 25, model 1)"


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
