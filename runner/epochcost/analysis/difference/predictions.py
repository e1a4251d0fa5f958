"""What two revisions make of predicted times: other ones, new ones, none any longer.

Predictions learn from everything at once, so that one row of a table moves all of them a little:
that is told by how many there are, the median and the largest. Costs stand in ``changes``.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from epochcost.analysis.difference.sides import Side
from epochcost.analysis.observations import Observation
from epochcost.analysis.priced_jobs import JobKey, work_of


@dataclass(frozen=True, slots=True)
class PredictedAnew:
    """Times that are predicted otherwise; relative changes, ``largest`` that of ``job``."""

    times: int
    median: float
    largest: float
    job: JobKey


@dataclass(frozen=True, slots=True)
class PredictionChanges:
    """Work by its first goal; ``gave_way`` has another time now, measured or published."""

    anew: PredictedAnew | None = None
    gave_way: tuple[JobKey, ...] = ()
    added: tuple[JobKey, ...] = ()
    removed: tuple[JobKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.anew or self.by_kind())

    def by_kind(self) -> Mapping[str, tuple[JobKey, ...]]:
        """The lists under the words that readers are shown, empty ones left out."""
        lists = {
            "gave way to a measured or published time": self.gave_way,
            "added": self.added,
            "removed": self.removed,
        }
        return {words: jobs for words, jobs in lists.items() if jobs}


def prediction_changes(one: Side, other: Side) -> PredictionChanges:
    """Compare what is predicted on two sides."""
    before, after = _predicted(one), _predicted(other)
    timed = {
        _where(row.observed)
        for rows in other.rows.values()
        for row in rows
        if row.observed.kind != "predicted"
    }
    gone = {job: _where(was) for job, was in before.items() if job not in after}
    return PredictionChanges(
        anew=_anew(before, after),
        gave_way=tuple(job for job, where in gone.items() if where in timed),
        added=tuple(job for job in after if job not in before),
        removed=tuple(job for job, where in gone.items() if where not in timed),
    )


def _predicted(side: Side) -> Mapping[JobKey, Observation]:
    rows = (row for rows in side.rows.values() for row in rows)
    return {
        work_of(row, row.observed.goals[0]).job: row.observed
        for row in rows
        if row.observed.kind == "predicted"
    }


def _where(observed: Observation) -> tuple[str, str, str]:
    return observed.workload.id, observed.machine.hardware, observed.mode


def _anew(
    before: Mapping[JobKey, Observation], after: Mapping[JobKey, Observation]
) -> PredictedAnew | None:
    changes = {
        job: float(now.step.mean / was.step.mean) - 1
        for job, now in after.items()
        if (was := before.get(job)) and was.step and now.step and was.step != now.step
    }
    if not changes:
        return None
    job, largest = max(changes.items(), key=lambda one: abs(one[1]))
    return PredictedAnew(len(changes), statistics.median(changes.values()), largest, job)
