"""The folders of a run: for temporary files, and for caches that may be deleted at any time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from epochcost.errors import CapabilityError


@contextlib.contextmanager
def scratch_folder(results: Path) -> Iterator[Path]:
    """Create an empty temporary folder that only this user can read, for the time of the context.

    The caller must hold the lock on ``results``. Raises CapabilityError if the folder is not new.
    """
    folder = remove_scratch(results)
    try:
        # Fails if another user has created it or it is a link, so that we never write to foreign
        # files.
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise CapabilityError(
            f"{folder}: expected a fresh folder for temporary files, got {error.strerror}: "
            "remove it, or name another place with the environment variable TMPDIR"
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_scratch(results: Path) -> Path:
    """Remove a killed run's folder and return its path; the caller must have locked ``results``."""
    name = hashlib.sha256(os.fsencode(results.resolve())).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"epochcost-{os.getuid()}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def optional_cache_folder(name: str) -> Path | None:
    """The path of the cache folder with this name, below $XDG_CACHE_HOME or ~/.cache.

    None if the user has no home folder. A relative $XDG_CACHE_HOME is ignored, as the XDG Base
    Directory Specification demands.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (named if named.is_absolute() else Path.home() / ".cache") / "epochcost" / name
    except RuntimeError:
        return None
