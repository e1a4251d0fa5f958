"""The CPU as the kernel's files describe it."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.measure.cpu import ControlGroups, cpu_model, cpu_quota, governors, throttle_count


def write(root: Path, files: dict[str, object]) -> Path:
    """Write a tree of small files; returns its root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_governors_that_differ_are_all_named(tmp_path: Path) -> None:
    """All governors are named, since one CPU in power saving can slow down the others."""
    names = {"cpu0": "powersave", "cpu1": "performance"}
    files = {f"cpu/{cpu}/cpufreq/scaling_governor": governor for cpu, governor in names.items()}
    assert governors(write(tmp_path, files)) == "performance, powersave"


def test_a_machine_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    """Missing files leave the governor and throttling unknown."""
    assert governors(tmp_path) is None
    assert throttle_count(tmp_path) is None


def test_throttling_is_counted_over_cores_and_packages(tmp_path: Path) -> None:
    """Throttling is summed over all cores and packages."""
    files = {
        "cpu/cpu0/thermal_throttle/core_throttle_count": 0,
        "cpu/cpu1/thermal_throttle/core_throttle_count": 2,
        "cpu/cpu0/thermal_throttle/package_throttle_count": 5,
    }
    assert throttle_count(write(tmp_path, files)) == 7


def test_a_name_without_a_number_gets_family_and_model(tmp_path: Path) -> None:
    """A name without a model number gets family and model, to tell generations apart."""
    text = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
    text += text.replace(": 0", ": 1").replace(": 25", ": 26")
    root = write(tmp_path, {"cpuinfo": text})
    assert cpu_model(root / "cpuinfo") == "AMD EPYC (family 25, model 1)"


def test_a_name_from_lscpu_is_found_in_any_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For Arm, whose cpuinfo has no name, lscpu is asked for its untranslated output."""
    translated = 'case "$LC_ALL" in C) echo "Model name: N1";; *) echo "Modellname: N1";; esac'
    tool = write(tmp_path, {"lscpu": f"#!/bin/sh\n{translated}", "cpuinfo": "processor: 0"})
    (tool / "lscpu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert cpu_model(tmp_path / "cpuinfo") == "N1"


def groups(root: Path, membership: str, files: dict[str, str]) -> ControlGroups:
    """Control groups with these files, and the membership of a process."""
    (root / "membership").write_text(membership)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return ControlGroups(root / "membership", root)


def test_the_smallest_quota_of_all_groups_above_counts(tmp_path: Path) -> None:
    """A group without a quota has that of the slice above, two and a half CPUs."""
    files = {"a.slice/cpu.max": "250000 100000", "a.slice/b/cpu.max": "max 100000"}
    assert cpu_quota(groups(tmp_path, "0::/a.slice/b\n", files)) == 2.5


def test_the_first_version_has_two_files(tmp_path: Path) -> None:
    """Version 1 of control groups has a file for the quota, -1 for none, and one for the period."""
    files = {
        "cpu/job/cpu.cfs_quota_us": "50000",
        "cpu/job/cpu.cfs_period_us": "100000",
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
    }
    assert cpu_quota(groups(tmp_path, "4:cpu,cpuacct:/job\n", files)) == 0.5


def test_no_group_and_no_limit_are_none(tmp_path: Path) -> None:
    """Without a group or without a limit there is no quota."""
    assert cpu_quota(ControlGroups(tmp_path / "absent", tmp_path)) is None
    assert cpu_quota(groups(tmp_path, "0::/\n", {"cpu.max": "max 100000"})) is None
