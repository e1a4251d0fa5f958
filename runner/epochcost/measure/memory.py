"""Memory: the most that this process ever held, and the most that it may."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import psutil

from epochcost.measure.kernel_files import ControlGroups, read_number

_STATUS = Path("/proc/self/status")


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


def control_group_limits_bytes(groups: ControlGroups | None = None) -> tuple[int, ...]:
    """The limits of the groups of this process, of both versions; empty where there are none.

    Version 2 writes ``memory.max`` (``max``: no limit), version 1 ``memory.limit_in_bytes`` (about
    2**63: no limit): the kernel's admin-guide, cgroup-v2 and cgroup-v1/memory.
    """
    groups = groups or ControlGroups()
    files = groups.files("memory.max", "memory", "memory.limit_in_bytes")
    return tuple(limit for file in files if (limit := read_number(file)) is not None)
