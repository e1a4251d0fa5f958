"""The results of a folder that has no damaged file."""

from __future__ import annotations

from pathlib import Path

from epochcost.results.records import Result
from epochcost.results.store import load_all


def sound_results(folder: Path) -> tuple[Result, ...]:
    """Every result below a folder, ordered by file name; a damaged file fails the test."""
    loaded = load_all(folder)
    assert not loaded.faults
    return tuple(loaded.records.values())
