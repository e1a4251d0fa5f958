"""Read this process's memory use and memory limits, and detect that a process ran out of memory."""

from __future__ import annotations

import contextlib
import platform
import re
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from epochcost.measure.cpu import OWN_GROUPS, ControlGroups, read_number, read_text

_STATUS = Path("/proc/self/status")
_SPARED_PART = 16
_LIMITED = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
# The file's name in version 2 of the control groups; its controller and name in version 1.
_LIMIT = ("memory.max", "memory", "memory.limit_in_bytes")
_USAGE = ("memory.current", "memory", "memory.usage_in_bytes")


def peak_memory_bytes() -> int | None:
    """The largest resident memory of this process so far, in bytes; None if unreadable.

    Linux's ``ru_maxrss`` is not used, because a process inherits this value from its parent.
    """
    if platform.system() == "Linux":
        return _process_status_bytes("VmHWM") or None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory_limit_bytes() -> int:
    """The most memory, in bytes, that the machine and the control groups allow this process."""
    return min((psutil.virtual_memory().total, *cgroup_limits_bytes()))


def available_memory_bytes() -> int:
    """Bytes that a new process could allocate now without taking memory from others.

    Respects control groups and ``ulimit``, and spares a sixteenth of ``memory_limit_bytes``.
    """
    free = min(psutil.virtual_memory().available, *_free_bytes_in_groups(), memory_limit_bytes())
    spared = memory_limit_bytes() // _SPARED_PART
    ulimit, _ = resource.getrlimit(_LIMITED)
    return max(1, free - spared if ulimit == resource.RLIM_INFINITY else min(free - spared, ulimit))


def _free_bytes_in_groups() -> Iterator[int]:
    files = zip(OWN_GROUPS.files(*_LIMIT), OWN_GROUPS.files(*_USAGE), strict=True)
    for limit_file, usage_file in files:
        limit, usage = read_number(limit_file), read_number(usage_file)
        if limit is not None and usage is not None:
            yield max(0, limit - max(0, usage - _page_cache_bytes(limit_file.parent)))


def _page_cache_bytes(group_folder: Path) -> int:
    text = read_text(group_folder / "memory.stat") or ""
    # The key is ``file`` in version 2 of control groups, ``total_cache`` in version 1.
    match = re.search(r"^(?:file|total_cache) (\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else 0


def cgroup_limits_bytes(groups: ControlGroups = OWN_GROUPS) -> tuple[int, ...]:
    """The memory limits, in bytes, of the control groups of this process.

    A group without a limit has an entry of about 2**63 in version 1 of control groups, and none in
    version 2 (the kernel's admin-guide: cgroup-v2 and cgroup-v1/memory).
    """
    limits = map(read_number, groups.files(*_LIMIT))
    return tuple(limit for limit in limits if limit is not None)


# The score of processes that Linux kills first (proc_pid_oom_score_adj(5)).
_FIRST_TO_GO = "1000"
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_MACHINE = Path("/proc/vmstat")
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_SIGNS = re.compile(
    "|".join(
        (
            # Python, NumPy, C++ and the C library
            r"MemoryError",
            r"Unable to allocate [\d.]+ \w+ for an array",
            r"bad_?\s?alloc",  # std::bad_alloc, "bad allocation"
            r"cannot allocate memory",
            r"memory allocation still failed",  # OpenBLAS
            r"can't start new thread",  # no room for its stack
            r"out of memory",  # also the text of cudaErrorMemoryAllocation
            # ONNX Runtime's arena: its first line, and its line if the arena has a limit
            r"failed to allocate memory",
            r"available memory of \d+ is smaller than requested bytes",
            # names of errors of CUDA and its libraries
            r"cudaErrorMemoryAllocation",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"CUDA failure 2\b",
            r"\w+_STATUS_ALLOC_FAILED",
        )
    ),
    re.IGNORECASE,
)


def tells_out_of_memory(text: str, status: int = 0, oom_killed: bool | None = None) -> bool:
    """Whether a process ran out of memory, by its last lines ``text`` and exit ``status``.

    A SIGKILL counts as lack of memory unless ``oom_killed`` (see ``was_oom_killed``) is False.
    """
    killed = status == -signal.SIGKILL and oom_killed is not False
    return killed or _SIGNS.search(text) is not None


def oom_kill_count(groups: ControlGroups = OWN_GROUPS, machine: Path = _MACHINE) -> int | None:
    """Number of processes that the kernel has killed for lack of memory; None if unknown.

    Counts in this process's control group (admin-guide: cgroup-v2, ``memory.events``; cgroup-v1,
    ``memory.oom_control``), or else on the machine (since Linux 4.13).
    """
    files = (*groups.files("memory.events", "memory", "memory.oom_control"), machine)
    matches = (_KILLS.search(read_text(file) or "") for file in files)
    return next((int(count[1]) for count in matches if count), None)


def was_oom_killed(before: int | None, after: int | None) -> bool | None:
    """Whether ``oom_kill_count`` grew, so a process was killed; None if a count is unknown."""
    return None if before is None or after is None else after > before


def prefer_oom_kill() -> None:
    """Make the kernel kill this process first when memory is short."""
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text(_FIRST_TO_GO)


def limit_memory(limit_bytes: int) -> None:
    """Limit the memory of this process until it ends; allocations beyond the limit fail.

    On Linux, the limit applies to private writable memory, without the memory that libraries have
    reserved but not used so far. On other systems, it applies to the whole address space.
    """
    _, hard = resource.getrlimit(_LIMITED)
    needed = _process_status_bytes("VmData") + max(0, limit_bytes - _process_status_bytes("VmRSS"))
    bound = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(_LIMITED, (bound, hard))


def _process_status_bytes(field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB$", read_text(_STATUS) or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else 0
