"""Write files completely or not at all, and lock folders so that only one process writes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from epochcost.errors import CapabilityError

TEMPORARY_SUFFIX = ".partial"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_RIGHT = {errno.EACCES, errno.EPERM, errno.EROFS}
_ELSEWHERE = "name a folder on a local disk with --results"


def write_atomically(
    path: Path, data: bytes, refusal: Callable[[Path, OSError], CapabilityError] | None = None
) -> None:
    """Write ``data`` to ``path`` so that a reader sees either the old file or the whole new file.

    The new file gets the permissions of the old file. Raises CapabilityError, or the error that
    ``refusal`` makes, if the disk is full or the folder cannot be written.
    """
    try:
        _write_and_replace(path, data)
    except OSError as error:
        raise (refusal or storage_error)(path.parent, error) from error


def require_writable(
    folder: Path, refusal: Callable[[Path, OSError], CapabilityError] | None = None
) -> None:
    """Create ``folder`` if it is missing.

    If it is not writable, raises CapabilityError, or the error that ``refusal`` makes.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=TEMPORARY_SUFFIX) as probe:
            probe.write(b"\n" * 4096)
    except OSError as error:
        raise (refusal or storage_error)(folder, error) from error


def remove_leftovers(folder: Path) -> None:
    """Remove a killed process's temporary files below ``folder``, which the caller has locked."""
    for leftover in folder.rglob(f".*{TEMPORARY_SUFFIX}"):
        with contextlib.suppress(OSError):
            leftover.unlink()


def is_full(error: Exception) -> bool:
    """Whether the error says that the disk or the quota is full."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def storage_error(folder: Path, error: OSError) -> CapabilityError:
    """The error for a folder in which no result can be written; its message says what to do."""
    return CapabilityError(
        f"{unwritable(folder, error)} (--results names another folder); results finished so far "
        "are kept; then run the same command again (`run`: with --resume)"
    )


def unwritable(folder: Path, error: OSError) -> CapabilityError:
    """The error for a folder that takes no new file; for results, see ``storage_error``."""
    remedy = "make this folder, or name another"
    if is_full(error):
        remedy = "free some space there"
    elif error.errno in _NO_RIGHT:
        remedy = "change the folder's rights"
    got = f"got {error.strerror or error}"
    return CapabilityError(f"{folder}: expected a folder that takes a new file, {got}: {remedy}")


def _write_and_replace(path: Path, data: bytes) -> None:
    # Threads of a launch may write the same file at once.
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}{TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):  # there is no file yet
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # A renamed file then survives a power cut. Some file systems cannot sync a folder.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def exclusive_lock(folder: Path, elsewhere: str = _ELSEWHERE) -> Iterator[None]:
    """Lock ``folder``, which must exist, until the context or the process ends.

    Raises CapabilityError if another process has the lock, or if the file system has no locks;
    ``elsewhere`` tells the user how to use another folder.
    """
    with contextlib.ExitStack() as resources:
        try:
            resources.enter_context(locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            raise CapabilityError(
                f"{folder}: expected to be the only run that writes here, but another run is in "
                f"progress: wait for it, or {elsewhere} (two runs at once on one machine also slow "
                "each other)"
            ) from None
        except OSError as error:
            raise CapabilityError(
                f"{folder}: expected a folder that can be locked, got {error.strerror}: {elsewhere}"
            ) from None
        yield


@contextlib.contextmanager
def workplace(root: Path, prefix: str) -> Iterator[Path]:
    """Create an empty folder below ``root`` for this process, and remove it at the end.

    Other folders with this ``prefix`` are removed if the processes that created them have ended.
    """
    root.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as resources:
        # Without this lock, another process could remove the new folder before it is locked.
        with locked(root):
            _remove_remains(root, prefix)
            making = tempfile.TemporaryDirectory(
                prefix=prefix, dir=root, ignore_cleanup_errors=True
            )
            folder = Path(resources.enter_context(making))
            resources.enter_context(locked(folder))
        yield folder


def _remove_remains(root: Path, prefix: str) -> None:
    for folder in root.iterdir():
        if folder.name.startswith(prefix):
            with contextlib.suppress(OSError), locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Wait for the lock of a folder, and hold it until the context or the process ends.

    With ``fcntl.LOCK_NB`` in ``how``, the function raises BlockingIOError instead of waiting.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
