"""How the figures of one machine moved: every stored measurement of one piece of work on one host.

A result file is replaced when the very same trial is measured again. What stays beside it, and is
compared here, are trials of other versions of the runtime, of the spec or of epochcost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from epochcost.cost import Time
from epochcost.report.difference.keys import changed_keys
from epochcost.report.inputs import Inputs, Stored
from epochcost.report.observations import Evidence
from epochcost.report.pages.page import grouped
from epochcost.report.subjects import Machine, Subject, measured_machine
from epochcost.results.summary import summary_of
from epochcost.specs.study import Mode
from epochcost.statistics import Bounded, ratio
from epochcost.statistics.change import TimeChange, time_change


@dataclass(frozen=True)
class Measured:
    """One measurement of a series.

    ``change`` compares its step with the one before, ``method`` says what about the trial is other
    than there; None and empty for the first. ``relative`` is its step over that of the first.
    """

    at: dt.datetime
    step: Time
    software: str
    evidence: Evidence
    relative: Bounded
    change: TimeChange | None = None
    method: str = ""


@dataclass(frozen=True)
class Series:
    """One piece of work on one host; ``stored`` are its results, earliest first."""

    subject: Subject
    machine: Machine
    mode: Mode
    batch_size: int
    variant: str
    stored: tuple[Stored, ...]

    @cached_property
    def points(self) -> tuple[Measured, ...]:
        """Its measurements, earliest first."""
        return tuple(_points(self.stored))

    @property
    def name(self) -> str:
        """The work in one phrase."""
        words = (self.subject.name, self.mode, f"batch {self.batch_size}", self.variant)
        return ", ".join(word for word in words if word)

    @property
    def steps(self) -> tuple[Measured, ...]:
        """The measurements before which something changed for certain."""
        return tuple(one for one in self.points if one.change and one.change.significant)

    @property
    def farthest(self) -> float:
        """By how much it moved at most, as a share of the first."""
        return max(abs(point.relative.mean - 1) for point in self.points)


def histories(inputs: Inputs) -> tuple[Series, ...]:
    """Every piece of work that was measured, by machine and name; of LoadGen's there are none."""
    timed = [one for one in inputs.stored if one.result.measurement.served is None]
    found = [_series(inputs, group) for group in grouped(timed, _work).values()]
    return tuple(sorted(found, key=lambda one: (one.machine.name, one.name.casefold())))


def _work(stored: Stored) -> tuple[object, ...]:
    result, trial = stored.result, stored.result.trial
    host = (result.hardware, result.environment.fingerprint)
    return (*host, trial.model, trial.mode, trial.provider, trial.variant, trial.batch_size,
            trial.threads, trial.device)  # fmt: skip


def _series(inputs: Inputs, stored: Sequence[Stored]) -> Series:
    ordered = sorted(stored, key=lambda one: one.result.measurement.started_at)
    last, trial = ordered[-1].result, ordered[-1].result.trial
    catalogue = inputs.catalogue
    machine = measured_machine(
        catalogue.hardware[last.hardware],
        last.environment,
        trial.provider,
        only_host=False,
        gpu=trial.device,
    )
    return Series(
        Subject.of_model(catalogue.models[trial.model]),
        machine,
        trial.mode,
        trial.batch_size,
        trial.variant,
        tuple(ordered),
    )


def _points(ordered: Sequence[Stored]) -> Iterator[Measured]:
    steps = [_step(one) for one in ordered]
    yield _measured(ordered[0], steps[0], Bounded(1, 1, 1))
    for (before, after), (one, other) in zip(pairwise(ordered), pairwise(steps), strict=True):
        change = time_change(_bounded(one), _bounded(other))
        method = changed_keys(before.result.trial, after.result.trial)
        relative = ratio(_bounded(other), _bounded(steps[0]))
        yield _measured(after, other, relative, change, method)


def _measured(
    stored: Stored,
    step: Time,
    relative: Bounded,
    change: TimeChange | None = None,
    method: str = "",
) -> Measured:
    return Measured(
        stored.result.measurement.started_at,
        step,
        stored.result.trial.runtime.replace("==", " "),
        Evidence("result file", stored.uri),
        relative,
        change,
        method,
    )


def _step(stored: Stored) -> Time:
    summary = summary_of(stored.result.measurement)
    return Time.measured(summary.interval.low, summary.mean, summary.interval.high)


def _bounded(step: Time) -> Bounded:
    return Bounded(float(step.low), float(step.mean), float(step.high))
