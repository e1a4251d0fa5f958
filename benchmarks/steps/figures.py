"""Ratios with their spread, computed from rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steps.cases import OURS

Seconds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    low: float
    middle: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median and quartiles of two values or more."""
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


def ratio(seconds: Seconds, contender: str) -> Spread:
    """The time of epochcost over a contender's, round by round: below 1 epochcost is faster."""
    return spread([a / b for a, b in zip(seconds[OURS], seconds[contender], strict=True)])


def ratios(record: Mapping[str, Any]) -> dict[str, Spread]:
    """Ratios from all sessions of a case, by contender."""
    return {
        name: ratio(session["seconds"], name)
        for session in record["sessions"]
        for name in session["seconds"]
        if name != OURS
    }


def step_seconds(record: Mapping[str, Any], contender: str) -> float | None:
    """The median step of a contender in its first session; None if it has no session."""
    seconds = first(record, "seconds", contender)
    return None if seconds is None else statistics.median(seconds)


def first(record: Mapping[str, Any], field: str, contender: str) -> Any:
    """A field of a contender in its first session, such as ``peak_bytes``; None without one."""
    fields = (session[field] for session in record["sessions"])
    return next((values[contender] for values in fields if contender in values), None)
