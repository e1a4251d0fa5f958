"""What a run tells while it goes: one frozen value per thing that happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import EpochcostError
from epochcost.measure.job import Progress
from epochcost.plan.trial import Trial
from epochcost.results.records import Result


@dataclass(frozen=True)
class Started:
    """The trial is being built; ``number`` of ``total`` counts from 1, skipped ones included."""

    trial: Trial
    number: int
    total: int


@dataclass(frozen=True)
class Advanced:
    """The trial's worker got further."""

    trial: Trial
    progress: Progress


@dataclass(frozen=True)
class Finished:
    """The trial is measured and stored."""

    trial: Trial
    result: Result
    path: Path


@dataclass(frozen=True)
class Skipped:
    """The trial was measured on this host before."""

    trial: Trial
    result: Result


@dataclass(frozen=True)
class Failed:
    """The trial has no result; the others go on."""

    trial: Trial
    error: EpochcostError


Outcome = Finished | Skipped | Failed
Event = Started | Advanced | Outcome
OnEvent = Callable[[Event], None]
