"""What stands between this process and the hardware: hypervisor, container, and their limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from epochcost.measure.environment.commands import output
from epochcost.measure.kernel_files import ControlGroups, read_number, read_text

_ROOT = Path("/")
# Set by the runtime inside its containers.
_VARIABLES = {
    "KUBERNETES_SERVICE_HOST": "kubernetes",
    "APPTAINER_CONTAINER": "apptainer",
    "SINGULARITY_CONTAINER": "singularity",
}
_MARKERS = {".dockerenv": "docker", "run/.containerenv": "podman"}
# Names in the path of the first process's group.
_GROUP_NAMES = {"kubepods": "kubernetes", "docker": "docker", "lxc": "lxc", "libpod": "podman"}


def virtualisation() -> str | None:
    """Name the hypervisor, ``none`` on bare metal; None where nothing tells."""
    return output("systemd-detect-virt", "--vm", any_status=True)


def container(root: Path = _ROOT, variables: Mapping[str, str] = os.environ) -> str | None:
    """Name the kind of container, ``none`` where nothing tells of one; None off Linux."""
    if not (root / "proc/1").exists():
        return None
    by_variable = (kind for name, kind in _VARIABLES.items() if name in variables)
    by_marker = (kind for name, kind in _MARKERS.items() if (root / name).exists())
    groups = read_text(root / "proc/1/cgroup") or ""
    by_group = (kind for name, kind in _GROUP_NAMES.items() if name in groups)
    told = read_text(root / "run/systemd/container")
    return next(by_variable, None) or next(by_marker, None) or told or next(by_group, "none")


def cpu_quota(groups: ControlGroups | None = None) -> float | None:
    """How many CPUs' worth of time the control groups allow; None where they set no limit.

    Version 2 writes quota and period in one file (``max`` is no limit), version 1 in two (-1).
    """
    groups = groups or ControlGroups()
    shares = [
        _unified_quota(file) if file.name == "cpu.max" else _legacy_quota(file)
        for file in groups.files("cpu.max", "cpu", "cpu.cfs_quota_us")
    ]
    return min((share for share in shares if share), default=None)


def _unified_quota(file: Path) -> float | None:
    quota, _, period = (read_text(file) or "").partition(" ")
    allowed = quota.isdecimal() and period.isdecimal() and int(period)
    return int(quota) / int(period) if allowed else None


def _legacy_quota(file: Path) -> float | None:
    quota, period = read_number(file), read_number(file.with_name("cpu.cfs_period_us"))
    return quota / period if quota and period else None
