"""One writer at a time: two runs on one folder would disturb each other's files and times."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from epochcost.errors import CapabilityError


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold ``folder``, which must exist, for one process; the kernel releases it at its death.

    The folder itself is locked, so nothing is left behind. Raises CapabilityError where another
    process holds it or the file system has no locks.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lock(folder, descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CapabilityError(
            f"{folder}: demanded to be the only run that writes here; got another one in progress: "
            "wait for it, or name another folder with --results (two runs at once on one machine "
            "also spoil each other's times)"
        ) from None
    except OSError as error:
        raise CapabilityError(
            f"{folder}: demanded a folder that can be locked; got {error.strerror}: "
            "name a folder on a local disk with --results"
        ) from None
