"""Calls into onnx's C++ code on strangers' files, bounded by trying them in a copy of the process.

Its checker and shape inference loop without end on some graphs, or end the process, and no signal
reaches Python meanwhile. A forked copy goes first, with limits on its CPU time and memory; it costs
the calls a second time. What is small enough to be sent back is computed in the copy alone. Where a
system cannot fork, nothing is tried.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from onnxstep.errors import ModelError

# The slowest file of models/ takes three seconds; one of a hundred thousand nodes, ten.
CPU_SECONDS = 60
# Beyond what the process has already.
MEMORY_BYTES = 8 * 2**30
STATM = Path("/proc/self/statm")
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
# The line of a call that raised an exception.
_RAISED = b"!"


class _Copy:
    """Whether this process is a copy: there, everything is a trial."""

    here = False


_copy = _Copy()


def require_end(call: Callable[[], object], what: str) -> None:
    """Raise ModelError if ``call`` does not come to an end in a copy of this process.

    ``what`` names the call in a message. An exception of Python is an end: who calls again gets it.
    Raises MemoryError if the copy crashes under a limit on memory that this process has itself:
    onnx does not survive an allocation that fails.
    """
    if _copy.here or not hasattr(os, "fork"):
        return
    status = _status_of_copy(call)
    crashed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in _CRASHES
    if crashed and not _is_memory_unlimited():
        raise MemoryError(f"{what} needs more memory than this process may have")
    if status:
        raise ModelError(f"{what} {_end(status)}; export the model again, or cut the graph in two")


def computed_in_copies(calls: Sequence[Callable[[], bytes]]) -> tuple[bytes | None, ...]:
    """Lines of the calls, made in a copy of this process; None for calls that do not end there.

    One copy makes all calls until one ends it, and has no need to try anything again. Exceptions of
    Python are raised here.
    """
    lines: list[bytes | None] = []
    while len(lines) < len(calls):
        remaining = calls[len(lines) :]
        if _copy.here or not hasattr(os, "fork"):
            return (*lines, *(call() for call in remaining))
        computed = _lines_of_copy(remaining)
        lines += (
            call() if line == _RAISED else line
            for call, line in zip(remaining, computed, strict=False)
        )
        lines += [None] * (len(computed) < len(remaining))
    return tuple(lines)


def _lines_of_copy(calls: Sequence[Callable[[], bytes]]) -> list[bytes]:
    """The lines of the first calls, up to the one that the copy does not survive."""
    reading, writing = os.pipe()

    def write_lines() -> None:
        _copy.here = True
        with os.fdopen(writing, "wb") as pipe:
            for call in calls:
                _limit_cpu_seconds()
                pipe.write(_line(call) + b"\n")
                pipe.flush()

    def read_lines() -> list[bytes]:
        os.close(writing)
        return pipe.read().split(b"\n")[:-1]

    with os.fdopen(reading, "rb") as pipe:
        computed: list[bytes] = []
        _status_of_copy(write_lines, lambda: computed.extend(read_lines()))
    return computed


def _line(call: Callable[[], bytes]) -> bytes:
    try:
        return call()
    except MemoryError:
        raise
    except Exception:  # of Python, which the caller gets when it calls in earnest
        return _RAISED


def _status_of_copy(
    call: Callable[[], object], meanwhile: Callable[[], object] = lambda: None
) -> int:
    """How a copy of this process that makes a call ends; ``meanwhile`` is called here."""
    # A signal between the fork and the waiting would leave the copy behind.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
    with warnings.catch_warnings():
        # Python warns of threads, which the copy does not have; the call takes no lock of theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run_to_the_end(call)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        meanwhile()
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return status


def _end(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"needs more than {MEMORY_BYTES // 2**30} GiB"
    if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return f"does not end within {CPU_SECONDS} s"
    return f"ends in {signal.Signals(os.WTERMSIG(status)).name}"


def _limit_cpu_seconds() -> None:
    """Allow this process so many seconds of CPU from now on."""
    import resource  # noqa: PLC0415 - where there is fork, there is resource

    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = int(time.process_time()) + CPU_SECONDS
    if most != resource.RLIM_INFINITY:
        seconds = min(seconds, most)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))


def _is_memory_unlimited() -> bool:
    import resource  # noqa: PLC0415 - where there is fork, there is resource

    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return all(resource.getrlimit(kind)[0] == resource.RLIM_INFINITY for kind in limits)


def _run_to_the_end(call: Callable[[], object]) -> None:
    """Run in the copy, which says nothing and never returns."""
    import resource  # noqa: PLC0415 - where there is fork, there is resource

    code, free = 0, False
    try:
        faulthandler.disable()
        for name in (*_ENDINGS, signal.SIGXCPU):
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit_cpu_seconds()
        free = _is_memory_unlimited()
        if free and STATM.exists():
            held_bytes = int(STATM.read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (held_bytes + MEMORY_BYTES,) * 2)
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(null, stream)
        call()
    except MemoryError:
        # Under a limit of the process itself, the call in earnest says so.
        code = int(free)
    except BaseException:  # an end like any other
        code = 0
    os._exit(code)
