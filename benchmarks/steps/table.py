"""The tables of docs/performance.md, and the ratios that the site shows, from the records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def line(key: str, session: Mapping[str, Any]) -> str:
    """A finished turn-taking, for the one who waits."""
    from statistics import median

    times = ", ".join(f"{n} {median(v) * 1e3:.2f} ms" for n, v in session["seconds"].items())
    return f"{key}: {times}"


def write(records: Mapping[str, Any], root: Path) -> None:
    """Write both."""
