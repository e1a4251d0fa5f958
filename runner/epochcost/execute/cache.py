"""Where things are kept between runs that may be deleted at any time: the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """A folder below $XDG_CACHE_HOME, else ~/.cache; it need not exist.

    The XDG Base Directory Specification takes absolute paths only. Raises RuntimeError where there
    is no home.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "epochcost" / name
