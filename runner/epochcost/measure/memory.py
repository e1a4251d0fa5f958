"""The most memory that this process ever held."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import psutil

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
