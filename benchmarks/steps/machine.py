"""Machine and date of a measurement."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path
from typing import Any

from epochcost.measure.environment import detect_environment
from steps.rounds import Timed


def described() -> dict[str, Any]:
    """The machine and the version of epochcost's runtime."""
    environment = detect_environment()
    return {
        "cpu": environment.cpu,
        "logical_cpus": environment.logical_cpus,
        "runtime": environment.runtime,
    }


def session(root: Path, timed: Timed) -> dict[str, Any]:
    """The record of one session: the day, epochcost's revision, and the times."""
    return {
        **stamp(root),
        "seconds": {
            name: [float(f"{value:.5g}") for value in values]
            for name, values in timed.seconds.items()
        },
        "start_seconds": dict(timed.start_seconds),
        "peak_bytes": dict(timed.peak_bytes),
        "versions": {name: version for name, version in timed.versions.items() if version},
    }


def stamp(root: Path) -> dict[str, Any]:
    """The day and epochcost's revision."""
    return {"as_of": dt.datetime.now(dt.UTC).date().isoformat(), "commit": _commit(root)}


def _commit(root: Path) -> str | None:
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        process = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:  # a rented machine may have no git
        return None
    return process.stdout.strip() or None
