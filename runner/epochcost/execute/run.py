"""Trials to stored results: build, measure, store, one after the other, each by itself.

A failed trial does not stop the others. A disk that takes no more results stops the run, since no
later trial could be kept. A sweep visits ever larger batches as its results say. What is finished,
a round or a trial, is stored before the next begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from epochcost.errors import EpochcostError
from epochcost.execute.assignment import Assignment, Run
from epochcost.execute.events import (
    Exhausted,
    Failed,
    Finished,
    OnEvent,
    Outcome,
    RoundKept,
    Scheduled,
    Skipped,
    Started,
    Swept,
)
from epochcost.execute.folders import remove_scratch
from epochcost.execute.sweep import (
    explore,
    failed_before,
    fitting,
    is_out_of_memory,
    trial_room_bytes,
)
from epochcost.execute.visit import visited
from epochcost.measure.environment import detect
from epochcost.measure.job import OutOfMemory
from epochcost.measure.memory import available_memory_bytes
from epochcost.plan.rounds import Visit, visits
from epochcost.plan.sweep import Sweep, ladder
from epochcost.plan.trial import Trial
from epochcost.results.files import exclusive, remove_leftovers, require_writable
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


__all__ = ["Assignment", "run_trials"]


def run_trials(assignment: Assignment, on_event: OnEvent) -> tuple[Outcome, ...]:
    """Do every trial and return what became of each, in the order of the assignment.

    Those that sweeps found follow, without the sizes that memory did not suffice for.
    Raises CapabilityError before the first trial where results cannot be written or another run
    is writing them, and later where the disk is full; results stored by then are kept.
    """
    folder = assignment.store.folder / assignment.hardware
    require_writable(folder)
    with exclusive(folder):
        remove_leftovers(folder)
        remove_scratch(folder)
        outcomes = _outcomes(Run(assignment, on_event, detect().fingerprint))
    return tuple(outcomes.values())


def _outcomes(run: Run) -> dict[str, Outcome]:
    """What became of each trial, by id in their order; one that failed is not visited again.

    Sweeps come first: what ran in them is visited again in later rounds, as are the others.
    """
    outcomes: dict[str, Outcome] = {}
    found: dict[str, Trial] = {}
    rounds = dict(run.assignment.rounds)
    for sweep in run.assignment.sweeps:
        ran = swept(run, sweep, outcomes)
        found |= {trial.id: trial for trial in ran}
        rounds |= {trial.id: sweep.rounds for trial in ran}
    listed = {trial.id: trial for trial in run.assignment.trials} | found
    trials = [trial for trial in listed.values() if trial.id not in outcomes]

    def done(trial: Trial) -> int:
        return max(run.rounds_done(trial), int(trial.id in found))

    _visit_all(run, tuple(visits(trials, rounds, done)), outcomes)
    order = dict.fromkeys(listed) | dict.fromkeys(outcomes)
    return {identifier: outcomes[identifier] for identifier in order}


def _visit_all(run: Run, schedule: Sequence[Visit], outcomes: dict[str, Outcome]) -> None:
    run.on_event(Scheduled(tuple(schedule)))
    for number, visit in enumerate(schedule, start=1):
        if visit.trial.id in outcomes:
            continue
        run.on_event(Started(visit.trial, number, len(schedule), visit.number, visit.rounds))
        happened = visited(run, visit)
        run.on_event(happened)
        if not isinstance(happened, RoundKept):
            outcomes[visit.trial.id] = happened
