"""System tools, asked shortly: one that is absent, fails or hangs says nothing."""

from __future__ import annotations

import shutil
import subprocess

_SECONDS = 5


def output(*command: str, any_status: bool = False) -> str | None:
    """What a tool prints without surrounding blanks; None if absent, failing or silent."""
    printed = raw_output(*command, any_status=any_status)
    return printed.strip() or None if printed is not None else None


def raw_output(*command: str, any_status: bool = False) -> str | None:
    """The same as printed, so that an empty answer differs from none."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if any_status or done.returncode == 0 else None
