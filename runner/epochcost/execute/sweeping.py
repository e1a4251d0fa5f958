"""The first round of a sweep: one size after the other until something ends it.

The end is stored. Which size comes next and when to end is left to ``sweep``; later rounds are
visits as any other.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from epochcost.errors import EpochcostError
from epochcost.execute.assignment import Run
from epochcost.execute.events import (
    Exhausted,
    Failed,
    Finished,
    Outcome,
    RoundKept,
    Scheduled,
    Skipped,
    Started,
    Swept,
)
from epochcost.execute.sweep import (
    explore,
    failed_before,
    fitting,
    is_out_of_memory,
    trial_room_bytes,
)
from epochcost.execute.visit import visited
from epochcost.measure.job import OutOfMemory
from epochcost.measure.memory import available_memory_bytes
from epochcost.plan.rounds import Visit
from epochcost.plan.sweep import Sweep, ladder
from epochcost.plan.trial import Trial
from epochcost.results.limits import write_limit
from epochcost.results.records import Result


def swept(run: Run, sweep: Sweep, outcomes: dict[str, Outcome]) -> tuple[Trial, ...]:
    """Do a sweep's first round, store its end, and return the trials that ran.

    ``outcomes`` takes those that are finished by then, and a failure that ended the sweep.
    """
    assignment = run.assignment
    room = assignment.memory_bytes or trial_room_bytes(sweep.trial)
    host_bytes = room if sweep.trial.provider == "cpu" else available_memory_bytes()
    bounded = replace(run, memory_bytes=host_bytes)
    known = failed_before(run.stored_limit(sweep), room)
    numbers = itertools.count(1)

    def attempt(trial: Trial) -> Result | EpochcostError:
        if trial.batch_size in known:
            return OutOfMemory(known[trial.batch_size])
        _announce(run, sweep, trial, next(numbers))
        happened = _first_visit(bounded, Visit(trial, 1, sweep.rounds))
        run.on_event(happened)
        if isinstance(happened, Finished | Skipped | Failed):
            outcomes[trial.id] = happened
        return happened.error if isinstance(happened, Failed | Exhausted) else happened.result

    fits = fitting(assignment.catalogue, sweep, room)
    explored = explore(sweep, assignment.hardware, room, fits, attempt)
    path = write_limit(assignment.store.folder, explored.limit)
    run.on_event(Swept(explored.limit, path))
    return tuple(result.trial for result in explored.results)


def _announce(run: Run, sweep: Sweep, trial: Trial, number: int) -> None:
    """A size begins; those above it may follow."""
    above = (sweep.at(size) for size in ladder(sweep) if size > trial.batch_size)
    schedule = tuple(Visit(each, 1, sweep.rounds) for each in (trial, *above))
    run.on_event(Scheduled(schedule))
    run.on_event(Started(trial, number, number + len(schedule) - 1, 1, sweep.rounds))


def _first_visit(run: Run, visit: Visit) -> RoundKept | Exhausted | Outcome:
    """The first round of a size, unless it is kept from the run that is resumed."""
    if done := run.rounds_done(visit.trial):
        kept = run.stored(visit.trial)
        assert kept is not None, "what has rounds is stored"
        if done >= visit.rounds:
            return Skipped(visit.trial, kept)
        return RoundKept(visit.trial, kept, run.path_of(visit.trial))
    happened = visited(run, visit)
    if isinstance(happened, Failed) and is_out_of_memory(happened.error):
        return Exhausted(visit.trial, happened.error)
    return happened
