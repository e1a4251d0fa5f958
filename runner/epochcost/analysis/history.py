"""Every measurement of one piece of work on one host, earliest first, and the changes between.

Results of other versions of the runtime, of the spec or of epochcost stand beside each other as
files. A file that was replaced is history of git, which is not read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from epochcost.analysis.difference.causes import changed_keys, step_change
from epochcost.analysis.inputs import Inputs, StoredResult
from epochcost.analysis.machines import Machine, measured_machine
from epochcost.analysis.observations import Workload, in_floats, mean_time
from epochcost.analysis.representatives import host_of, is_of_steps
from epochcost.analysis.rows import group_by
from epochcost.cost import Time
from epochcost.results.rounds import summary_of
from epochcost.specs.study import Mode
from epochcost.statistics import Bounded, ratio
from epochcost.statistics.interval import TimeChange


@dataclass(frozen=True)
class SeriesPoint:
    """One measurement of a series; ``relative`` is its step over that of the first.

    ``change`` compares its step with the one before, ``method`` names the keys of the trial that
    differ from it; None and empty for the first. ``uri`` is the address of the result file.
    """

    at: dt.datetime
    step: Time
    software: str
    uri: str
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
    runs: tuple[StoredResult, ...]

    @cached_property
    def points(self) -> tuple[SeriesPoint, ...]:
        """The measurements summarised, earliest first."""
        return tuple(_points(self.runs))

    @property
    def name(self) -> str:
        """The work in one phrase."""
        parts = (self.workload.name, self.mode, f"batch {self.batch_size}", self.variant)
        return ", ".join(part for part in parts if part)

    @property
    def steps(self) -> tuple[SeriesPoint, ...]:
        """The measurements that differ significantly from the one before."""
        return tuple(point for point in self.points if point.change and point.change.significant)

    @property
    def farthest(self) -> float:
        """Largest change from the first measurement, as a share of it."""
        return max(abs(point.relative.mean - 1) for point in self.points)


def histories(inputs: Inputs) -> tuple[Series, ...]:
    """Every piece of work that was measured in steps, by machine and name."""
    stored = (result for result in inputs.stored if is_of_steps(result.result))
    series = [_series(inputs, runs) for runs in group_by(stored, _work).values()]
    return tuple(sorted(series, key=lambda each: (each.machine.name, each.name.casefold())))


def _work(stored: StoredResult) -> tuple[object, ...]:
    trial = stored.result.trial
    work = (trial.model, trial.mode, trial.provider, trial.variant, trial.batch_size)
    return (*host_of(stored.result), *work, trial.session.threads, trial.session.device)


def _series(inputs: Inputs, runs: Sequence[StoredResult]) -> Series:
    ordered = sorted(runs, key=_started_at)
    last, catalogue = ordered[-1].result, inputs.catalogue
    trial = last.trial
    machine = measured_machine(
        catalogue.hardware[last.hardware],
        last.environment,
        trial.provider,
        only_host=False,
        gpu=trial.session.device,
    )
    workload = Workload.of_model(catalogue.models[trial.model])
    return Series(workload, machine, trial.mode, trial.batch_size, trial.variant, tuple(ordered))


def _started_at(stored: StoredResult) -> dt.datetime:
    return stored.result.measurement.started_at


def _points(runs: Sequence[StoredResult]) -> Iterator[SeriesPoint]:
    steps = [mean_time(summary_of(run.result.measurement)) for run in runs]
    yield _point(runs[0], steps[0], Bounded(1, 1, 1))
    for (before, after), step in zip(pairwise(runs), steps[1:], strict=True):
        change = step_change(before.result, after.result)
        method = changed_keys(before.result.trial, after.result.trial)
        relative = ratio(in_floats(step), in_floats(steps[0]))
        yield _point(after, step, relative, change, method)


def _point(
    stored: StoredResult,
    step: Time,
    relative: Bounded,
    change: TimeChange | None = None,
    method: str = "",
) -> SeriesPoint:
    software = stored.result.trial.runtime.replace("==", " ")
    return SeriesPoint(_started_at(stored), step, software, stored.uri, relative, change, method)
