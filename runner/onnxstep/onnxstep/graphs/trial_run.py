"""Try onnx's C++ code on an untrusted file in a copy of this process, before the real call.

onnx loops endlessly or crashes on some graphs. Systems without fork make no trial.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from onnxstep.errors import ModelError

# The slowest file of models/ takes three seconds; a file with a hundred thousand nodes takes ten.
CPU_SECONDS = 60
# The copy may use this much more memory than the process uses when it is copied.
MEMORY_BYTES = 8 * 2**30
STATM = Path("/proc/self/statm")
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)


def require_end(call: Callable[[], object], call_name: str) -> None:
    """Try ``call`` in a copy of this process; raise ModelError if it crashes or exceeds a limit.

    The limits are ``CPU_SECONDS`` and ``MEMORY_BYTES``. If this process has a memory limit, the
    copy gets no other, and a crash raises MemoryError. Other exceptions of ``call`` are ignored.
    """
    if not hasattr(os, "fork"):
        return
    status = _status_of_copy(call)
    crashed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in _CRASHES
    if crashed and not _is_memory_unlimited():
        # onnx crashes if an allocation fails.
        raise MemoryError(f"{call_name} needs more memory than this process may have")
    if status:
        raise ModelError(
            f"{call_name} {_end(status)}; export the model again, or cut the graph in two"
        )


def _status_of_copy(call: Callable[[], object]) -> int:
    """Make the ``call`` in a copy of this process; return the exit status."""
    # A signal between fork and wait would leave the copy running.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
    with warnings.catch_warnings():
        # Python warns about other threads, which the copy lacks; the call needs none of their
        # locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run_to_the_end(call)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
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
    """Limit this process to ``CPU_SECONDS`` more seconds of CPU time."""
    import resource  # noqa: PLC0415 - systems with fork have resource

    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = int(time.process_time()) + CPU_SECONDS
    if most != resource.RLIM_INFINITY:
        seconds = min(seconds, most)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))


def _is_memory_unlimited() -> bool:
    import resource  # noqa: PLC0415 - systems with fork have resource

    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return all(resource.getrlimit(kind)[0] == resource.RLIM_INFINITY for kind in limits)


def _run_to_the_end(call: Callable[[], object]) -> None:
    import resource  # noqa: PLC0415 - systems with fork have resource

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
        # If this process already had a memory limit, the caller's own call reports the error.
        code = int(free)
    except BaseException:  # no crash: the caller's own call raises this
        code = 0
    os._exit(code)
