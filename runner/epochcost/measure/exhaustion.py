"""When memory ends: bounding what this process may take of it, and knowing the end by its words.

A worker that ran out dies in many forms: Python's MemoryError, C++'s bad_alloc, an allocator of
ONNX Runtime or CUDA that gives up, the kernel's kill. One predicate knows them all.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from epochcost.measure.kernel_files import read_text

# Linux: what the kernel ends first when memory is short (proc_pid_oom_score_adj(5)).
_FIRST_TO_GO = "1000"
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_STATUS = Path("/proc/self/status")
_SIGNS = re.compile(
    "|".join(
        (
            # Python, NumPy, C++ and the C library
            r"MemoryError",
            r"Unable to allocate [\d.]+ \w+ for an array",
            r"bad_?\s?alloc",  # std::bad_alloc, "bad allocation"
            r"cannot allocate memory",
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


def tells_of_memory(words: str, status: int = 0) -> bool:
    """Whether a process that ended so, with these last words, ran out of memory.

    A SIGKILL counts: the kernel gives no other sign, and nobody else sends one by habit.
    """
    return status == -signal.SIGKILL or _SIGNS.search(words) is not None


def volunteer() -> None:
    """Let this process be the first that the kernel ends when the machine's memory is short."""
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text(_FIRST_TO_GO)


def limit_memory(limit_bytes: int) -> None:
    """Bound what this process may allocate, for good; beyond it an allocation fails.

    Linux bounds private writable memory, of which nearly all is touched here; elsewhere the whole
    address space.
    """
    import resource  # noqa: PLC0415 - exists on POSIX only

    kind = _limited()
    _, hard = resource.getrlimit(kind)
    bound = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    resource.setrlimit(kind, (bound, hard))


@contextlib.contextmanager
def limited_memory(more_bytes: int | None) -> Iterator[None]:
    """Bound for a while what this process may allocate beyond what it holds; None: not at all."""
    if more_bytes is None:
        yield
        return
    import resource  # noqa: PLC0415 - exists on POSIX only

    kind = _limited()
    before = resource.getrlimit(kind)
    try:
        limit_memory(_allocated_bytes() + more_bytes)
        yield
    finally:
        resource.setrlimit(kind, before)


def own_limit_bytes() -> int | None:
    """What the caller's ``ulimit`` leaves this process; None where it sets no limit."""
    import resource  # noqa: PLC0415 - exists on POSIX only

    soft, _ = resource.getrlimit(_limited())
    return None if soft == resource.RLIM_INFINITY else soft


def _limited() -> int:
    import resource  # noqa: PLC0415 - exists on POSIX only

    return resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS


def _allocated_bytes() -> int:
    """What counts against the limit by now; 0 where that is not told."""
    found = re.search(r"^VmData:\s+(\d+) kB$", read_text(_STATUS) or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
