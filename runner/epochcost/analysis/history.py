"""How the figures of one machine moved: every measurement of one piece of work on one host.

Trials of other versions of the runtime, of the spec or of epochcost stand beside each other as
files. A file that was replaced because the very same trial was measured again is read from git.
Steps are those of the machine undisturbed, where that is known of a stored result.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from epochcost.analysis.difference.results import changed_keys
from epochcost.analysis.inputs import Inputs, StoredResult, with_declared_machine
from epochcost.analysis.machines import Machine, measured_machine
from epochcost.analysis.observations import (
    Evidence,
    Workload,
    in_floats,
    mean_time,
    undisturbed_time,
)
from epochcost.analysis.repository import PastResult
from epochcost.analysis.representatives import is_of_steps
from epochcost.analysis.rows import group_by
from epochcost.cost import Time
from epochcost.plan.trial import Trial
from epochcost.results.environment import Environment
from epochcost.results.pace import OwnPace, PaceKey
from epochcost.results.records import Result
from epochcost.results.rounds import round_count, summary_of
from epochcost.results.undisturbed import as_it_was, undisturbed
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Mode
from epochcost.statistics import Bounded, ratio
from epochcost.statistics.interval import TimeChange, time_change

# Digits of a blob's id that name it in any repository of this size.
_DIGITS = 12


@dataclass(frozen=True)
class TimedRun:
    """One measurement, stored or replaced; its step time is summarised when it is asked for."""

    hardware: str
    trial: Trial
    environment: Environment
    at: dt.datetime
    evidence: Evidence
    rounds: int
    step: Callable[[], Time]


@dataclass(frozen=True)
class SeriesPoint:
    """One measurement of a series.

    ``change`` compares its step with the one before, ``method`` says what about the trial is other
    than there; None and empty for the first. ``relative`` is its step over that of the first.
    The evidence of a replaced result has no address: its label is the command that shows it.
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
    """One piece of work on one host; ``runs`` are its measurements, earliest first."""

    workload: Workload
    machine: Machine
    mode: Mode
    batch_size: int
    variant: str
    runs: tuple[TimedRun, ...]

    @cached_property
    def points(self) -> tuple[SeriesPoint, ...]:
        """Its measurements, earliest first."""
        return tuple(_points(self.runs))

    @property
    def name(self) -> str:
        """The work in one phrase."""
        words = (self.workload.name, self.mode, f"batch {self.batch_size}", self.variant)
        return ", ".join(word for word in words if word)

    @property
    def steps(self) -> tuple[SeriesPoint, ...]:
        """The measurements that differ significantly from the one before."""
        return tuple(one for one in self.points if one.change and one.change.significant)

    @property
    def farthest(self) -> float:
        """By how much it moved at most, as a share of the first."""
        return max(abs(point.relative.mean - 1) for point in self.points)


def histories(inputs: Inputs, past: Iterable[PastResult] = ()) -> tuple[Series, ...]:
    """Every piece of work that was measured, by machine and name; of LoadGen's there are none.

    ``past`` are results that were replaced; those of models and machines that have no spec any
    more are left out, and a measurement that is stored as well counts once.
    """
    stored = [one for one in inputs.stored if is_of_steps(one.result)]
    catalogue, paces = inputs.catalogue, inputs.own_paces()
    known = (one for one in past if _is_known(catalogue, one))
    replaced = [with_declared_machine(one, catalogue, inputs.declared) for one in known]
    every = [*(_stored(one, paces) for one in stored), *map(_replaced, replaced)]
    once = {(_work(one), one.at): one for one in reversed(every)}
    found = [_series(inputs, group) for group in group_by(once.values(), _work).values()]
    return tuple(sorted(found, key=lambda one: (one.machine.name, one.name.casefold())))


def _is_known(catalogue: Catalogue, one: PastResult) -> bool:
    return one.trial.model in catalogue.models and one.hardware in catalogue.hardware


def _stored(stored: StoredResult, paces: Mapping[PaceKey, OwnPace]) -> TimedRun:
    result = stored.result
    return TimedRun(
        result.hardware,
        result.trial,
        result.environment,
        result.measurement.started_at,
        Evidence("result file", stored.uri),
        round_count(result.measurement),
        lambda: _compared(result, paces),
    )


def _compared(result: Result, paces: Mapping[PaceKey, OwnPace]) -> Time:
    found = undisturbed(result, paces)
    return undisturbed_time(found) or mean_time(as_it_was(summary_of(result.measurement), found))


def _replaced(one: PastResult) -> TimedRun:
    evidence = Evidence(f"git show {one.blob[:_DIGITS]}", "")
    step = Time.from_floats(one.low, one.mean, one.high)
    return TimedRun(
        one.hardware,
        one.trial,
        one.environment,
        one.started_at,
        evidence,
        one.rounds,
        lambda: step,
    )


def _work(taken: TimedRun) -> tuple[object, ...]:
    trial = taken.trial
    host = (taken.hardware, taken.environment.fingerprint)
    return (*host, trial.model, trial.mode, trial.provider, trial.variant, trial.batch_size,
            trial.session.threads, trial.session.device)  # fmt: skip


def _series(inputs: Inputs, taken: Sequence[TimedRun]) -> Series:
    ordered = sorted(taken, key=lambda one: one.at)
    last, trial = ordered[-1], ordered[-1].trial
    catalogue = inputs.catalogue
    machine = measured_machine(
        catalogue.hardware[last.hardware],
        last.environment,
        trial.provider,
        only_host=False,
        gpu=trial.session.device,
    )
    return Series(
        Workload.of_model(catalogue.models[trial.model]),
        machine,
        trial.mode,
        trial.batch_size,
        trial.variant,
        tuple(ordered),
    )


def _points(ordered: Sequence[TimedRun]) -> Iterator[SeriesPoint]:
    steps = [one.step() for one in ordered]
    yield _measured(ordered[0], steps[0], Bounded(1, 1, 1))
    for (before, after), (one, other) in zip(pairwise(ordered), pairwise(steps), strict=True):
        rounds = min(before.rounds, after.rounds)
        change = time_change(in_floats(one), in_floats(other), rounds=rounds)
        method = changed_keys(before.trial, after.trial)
        relative = ratio(in_floats(other), in_floats(steps[0]))
        yield _measured(after, other, relative, change, method)


def _measured(
    taken: TimedRun,
    step: Time,
    relative: Bounded,
    change: TimeChange | None = None,
    method: str = "",
) -> SeriesPoint:
    return SeriesPoint(
        taken.at,
        step,
        taken.trial.runtime.replace("==", " "),
        taken.evidence,
        relative,
        change,
        method,
    )
