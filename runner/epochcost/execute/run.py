"""Trials to stored results: build, measure, store, one after the other, each by itself.

A failed trial does not stop the others. A disk that takes no more results stops the run, since no
later trial could be kept. What is finished, a round or a trial, is stored before the next begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochcost.execute.assignment import Assignment, Run
from epochcost.execute.events import OnEvent, Outcome, RoundKept, Scheduled, Started
from epochcost.execute.scratch import remove_scratch
from epochcost.execute.sweeping import swept
from epochcost.execute.visit import visited
from epochcost.measure.environment import detect
from epochcost.plan.rounds import Visit, visits
from epochcost.plan.trial import Trial
from epochcost.results.atomic import remove_leftovers, require_writable
from epochcost.results.lock import exclusive

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
