"""Memory: the most that this process ever held, and the most that it may."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_MEMBERSHIP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def peak_memory_bytes() -> int | None:
    """Read the peak resident set of this process in bytes; None where it cannot be read.

    Not ``ru_maxrss`` on Linux: there a process inherits the peak of the one that started it.
    """
    system = platform.system()
    if system == "Linux":
        return _high_water_mark()
    if system == "Windows":
        return getattr(psutil.Process().memory_info(), "peak_wset", None)
    import resource  # noqa: PLC0415 - exists on POSIX only

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _high_water_mark() -> int | None:
    try:
        match = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def memory_limit_bytes() -> int:
    """What this process may hold: the machine's memory, or less where its control group says so.

    A container's limit is one of a control group; every group above it limits as well.
    """
    return min((psutil.virtual_memory().total, *control_group_limits_bytes()))


def control_group_limits_bytes(
    membership: Path = _MEMBERSHIP, mounted: Path = _CGROUPS
) -> tuple[int, ...]:
    """The limits of the groups of this process, of both versions; empty where there are none.

    Version 2 writes ``memory.max`` (``max``: no limit), version 1 ``memory.limit_in_bytes`` (about
    2**63: no limit): the kernel's admin-guide, cgroup-v2 and cgroup-v1/memory.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return ()
    files: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            files += _upward(mounted, path, "memory.max")
        elif "memory" in controllers.split(","):
            files += _upward(mounted / "memory", path, "memory.limit_in_bytes")
    return tuple(limit for file in files if (limit := _limit(file)) is not None)


def _upward(root: Path, path: str, name: str) -> list[Path]:
    """The file of a group and of those above it; within a container only the root's is there."""
    group = root / path.lstrip("/")
    return [folder / name for folder in (group, *group.parents) if folder.is_relative_to(root)]


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
