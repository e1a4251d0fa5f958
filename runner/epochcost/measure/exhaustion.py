"""When memory ends: bounding what this process may take of it, and knowing the end by its words.

A worker that ran out dies in many forms: Python's MemoryError, C++'s bad_alloc, an allocator of
ONNX Runtime or CUDA that gives up, the kernel's kill. One predicate knows them all.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
from pathlib import Path

from epochcost.measure.kernel_files import ControlGroups, read_text

# Linux: what the kernel ends first when memory is short (proc_pid_oom_score_adj(5)).
_FIRST_TO_GO = "1000"
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_MACHINE = Path("/proc/vmstat")
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_GROUPS = ControlGroups()
_STATUS = Path("/proc/self/status")
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
            r"out of memory",  # also cudaErrorMemoryAllocation's words
            # ONNX Runtime's arena: its first line, and that under a limit of its own
            r"failed to allocate memory",
            r"available memory of \d+ is smaller than requested bytes",
            # CUDA and its libraries by the names of their errors
            r"cudaErrorMemoryAllocation",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"CUDA failure 2\b",
            r"\w+_STATUS_ALLOC_FAILED",
        )
    ),
    re.IGNORECASE,
)


def tells_of_memory(words: str, status: int = 0, for_memory: bool | None = None) -> bool:
    """Whether a process that ended so, with these last words, ran out of memory.

    A SIGKILL counts unless the kernel says otherwise (``for_memory``): nobody sends one by habit.
    """
    killed = status == -signal.SIGKILL and for_memory is not False
    return killed or _SIGNS.search(words) is not None


def memory_kills(groups: ControlGroups = _GROUPS, machine: Path = _MACHINE) -> int | None:
    """How many processes the kernel has ended for memory; None where it does not tell.

    Those of this control group where it counts them (admin-guide: cgroup-v2, ``memory.events``;
    cgroup-v1, ``memory.oom_control``), else those of the machine (since Linux 4.13).
    """
    files = (*groups.files("memory.events", "memory", "memory.oom_control"), machine)
    found = (_KILLS.search(read_text(file) or "") for file in files)
    return next((int(count[1]) for count in found if count), None)


def killed_for_memory(before: int | None, after: int | None) -> bool | None:
    """What two of these counts say of a kill between them; None: nothing."""
    return None if before is None or after is None else after > before


def volunteer() -> None:
    """Let this process be the first that the kernel ends when the machine's memory is short."""
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text(_FIRST_TO_GO)


def limit_memory(limit_bytes: int) -> None:
    """Bound what this process may hold, for good; beyond it an allocation fails.

    Linux bounds private writable memory, elsewhere it is the whole address space. What libraries
    reserved so far and never touched is not counted against the limit.
    """
    import resource  # noqa: PLC0415 - exists on POSIX only

    _, hard = resource.getrlimit(_limited())
    wanted = _status_bytes("VmData") + max(0, limit_bytes - _status_bytes("VmRSS"))
    bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(_limited(), (bound, hard))


def own_limit_bytes() -> int | None:
    """What the caller's ``ulimit`` leaves this process; None where it sets no limit."""
    import resource  # noqa: PLC0415 - exists on POSIX only

    soft, _ = resource.getrlimit(_limited())
    return None if soft == resource.RLIM_INFINITY else soft


def _limited() -> int:
    import resource  # noqa: PLC0415 - exists on POSIX only

    return resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS


def _status_bytes(name: str) -> int:
    """A size from this process's status; 0 where that is not told."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", read_text(_STATUS) or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
