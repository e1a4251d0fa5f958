"""Memory: the most that this process ever held, the most that it may, and what is free."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from pathlib import Path

import psutil

from epochcost.measure.exhaustion import own_limit_bytes
from epochcost.measure.kernel_files import ControlGroups, read_number, read_text

_STATUS = Path("/proc/self/status")
_SPARED_PART = 16


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


def available_memory_bytes() -> int:
    """What a new process could take now and leave the others theirs.

    The least of what the machine has available, what each control group has left below its limit
    (its page cache counts as free: the kernel drops it), and the caller's own ``ulimit``. A
    sixteenth of the whole is spared for those who grow meanwhile.
    """
    free = min(psutil.virtual_memory().available, *_room_in_groups(), memory_limit_bytes())
    own = own_limit_bytes()
    spared = memory_limit_bytes() // _SPARED_PART
    return max(1, free - spared if own is None else min(free - spared, own))


def _room_in_groups(groups: ControlGroups | None = None) -> Iterator[int]:
    """By group with a limit, the bytes that are neither held nor lost to it."""
    groups = groups or ControlGroups()
    limits = groups.files("memory.max", "memory", "memory.limit_in_bytes")
    usages = groups.files("memory.current", "memory", "memory.usage_in_bytes")
    for limit_file, usage_file in zip(limits, usages, strict=True):
        limit, usage = read_number(limit_file), read_number(usage_file)
        if limit is not None and usage is not None:
            yield max(0, limit - max(0, usage - _page_cache_bytes(limit_file.parent)))


def _page_cache_bytes(group: Path) -> int:
    """Version 2 counts ``file``, version 1 ``total_cache``, in the group's memory.stat."""
    text = read_text(group / "memory.stat") or ""
    found = re.search(r"^(?:file|total_cache) (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def control_group_limits_bytes(groups: ControlGroups | None = None) -> tuple[int, ...]:
    """The limits of the groups of this process, of both versions; empty where there are none.

    Version 2 writes ``memory.max`` (``max``: no limit), version 1 ``memory.limit_in_bytes`` (about
    2**63: no limit): the kernel's admin-guide, cgroup-v2 and cgroup-v1/memory.
    """
    groups = groups or ControlGroups()
    files = groups.files("memory.max", "memory", "memory.limit_in_bytes")
    return tuple(limit for file in files if (limit := read_number(file)) is not None)
