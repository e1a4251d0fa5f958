"""From rounds to figures: ratios with their spread. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steps.cases import OURS

Seconds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Spread:
    """A median between its quartiles."""

    low: float
    middle: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The quartiles of two values or more."""
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


def ratio(seconds: Seconds, other: str) -> Spread:
    """Our time over the other's, taken round by round: below 1 we are faster."""
    return spread([a / b for a, b in zip(seconds[OURS], seconds[other], strict=True)])


def ratios(record: Mapping[str, Any]) -> dict[str, Spread]:
    """By contender, of all sessions of a case."""
    return {
        name: ratio(session["seconds"], name)
        for session in record["sessions"]
        for name in session["seconds"]
        if name != OURS
    }


def step_seconds(record: Mapping[str, Any], contender: str) -> float | None:
    """The median step of a contender in the first session that has it; None where none has."""
    for session in record["sessions"]:
        if contender in session["seconds"]:
            return statistics.median(session["seconds"][contender])
    return None


def first(record: Mapping[str, Any], field: str, contender: str) -> float | None:
    """A figure of a contender beside its seconds, such as ``peak_bytes``."""
    for session in record["sessions"]:
        if contender in session[field]:
            return float(session[field][contender])
    return None
