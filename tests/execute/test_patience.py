"""A run waits for a calm machine and adds rounds while its patience lasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.execute.assignment import Assignment, Event, Failed, Finished, Started
from epochcost.execute.patience import Patience, disturbance, is_imprecise, look_at_host
from epochcost.execute.planning import plan_run
from epochcost.execute.run import run_trials
from epochcost.measure.job import Job, TrialFailed
from epochcost.measure.trial import OnProgress, Worker
from epochcost.plan.make import Plan, RunRequest
from epochcost.results.environment import Conditions
from epochcost.results.records import Measurement
from epochcost.results.rounds import round_count
from epochcost.results.store import ResultStore
from epochcost.specs.loader import load_catalogue
from report_project import make_result
from tiny_project import write_tiny_project

CALM = Conditions(seconds=1.0, others_cpus=0.0, steal_share=0.0)
BUSY = Conditions(seconds=1.0, others_cpus=1.2, steal_share=0.0)


class Machine:
    """A fake clock that looking and sleeping advance, with the conditions seen at each look.

    The last conditions repeat for ever.
    """

    def __init__(self, *seen: Conditions) -> None:
        self.now = 0.0
        self._seen: Iterator[Conditions] = iter(seen)
        self._last = seen[-1]

    def look(self) -> Conditions:
        """Advance the clock by a second and return the next conditions."""
        self.now += 1
        return next(self._seen, self._last)

    def sleep(self, seconds: float) -> None:
        """Advance the clock by ``seconds``."""
        self.now += seconds

    def patience(self, seconds: float) -> Patience:
        """Patience of ``seconds`` on a machine with two CPUs and this clock."""
        return Patience(seconds, 2, look=self.look, clock=lambda: self.now, sleep=self.sleep)


def test_a_run_waits_until_others_have_ended() -> None:
    """The run reports why and how long it may wait, and continues on a calm machine."""
    machine, told = Machine(BUSY, BUSY, CALM), list[tuple[str, float]]()
    patience = machine.patience(60)
    patience.wait_for_calm(lambda *why: told.append(why))
    reason = "other programs keep 1.2 of 2 CPUs busy"
    assert told == [(reason, 60), (reason, 54)]
    assert patience.left_seconds == 48
    assert machine.now == 13


def test_patience_ends() -> None:
    """On a machine that never calms down the wait ends when patience is spent."""
    machine = Machine(BUSY)
    patience = machine.patience(20)
    patience.wait_for_calm(lambda *_: None)
    assert patience.left_seconds <= 0
    assert machine.now < 30


def test_without_patience_nobody_looks() -> None:
    """With a patience of zero the run does not look at the machine."""
    machine = Machine(BUSY)
    machine.patience(0).wait_for_calm(lambda *_: None)
    assert machine.now == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (CALM, None),
        (BUSY, "other programs keep 1.2 of 2 CPUs busy"),
        (
            Conditions(seconds=1.0, others_cpus=0.0, steal_share=0.08),
            "the host takes 8 % of the CPU time",
        ),
        (Conditions(seconds=1.0), None),
    ],
)
def test_what_disturbs_is_told(change: Conditions, words: str | None) -> None:
    """Busy programs and a busy host are named; without counters nothing is named."""
    assert disturbance(change, 2) == words


def test_this_host_can_be_looked_at() -> None:
    """A look at the real host's counters takes a second."""
    assert look_at_host().seconds == pytest.approx(1, abs=0.5)


@pytest.fixture(name="assignment")
def assignment_fixture(tmp_path: Path) -> Assignment:
    """Two trials of the tiny project that demand an unreachable precision of the mean."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    trials = plan_run(catalogue, RunRequest(providers=("cpu",))).trials
    brief: dict[str, object] = {"minimum_samples": 20, "budget_seconds": Decimal("0.2")}
    brief["relative_half_width"] = Decimal("0.000001")
    store = ResultStore(tmp_path / "results")
    asked = tuple(trial.model_copy(update=brief) for trial in trials[:2])
    return Assignment(catalogue, Plan(asked), "local", store)


def test_what_is_not_precise_is_measured_in_more_rounds(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials that never become precise get more rounds than planned, all of them stored."""
    monkeypatch.setattr("epochcost.execute.patience.look_at_host", lambda: CALM)
    events: list[Event] = []
    patient = replace(assignment, patience_seconds=1.5)
    outcomes = run_trials(patient, events.append)
    begun = [one.trial.id for one in events if isinstance(one, Started)]
    rounds = []
    for one in outcomes:
        assert isinstance(one, Finished)
        rounds.append(round_count(one.result.measurement))
        assert begun.count(one.trial.id) == rounds[-1]
        assert is_imprecise(one.result)
    assert max(rounds) >= 2


def test_an_added_round_that_fails_leaves_its_trial_complete(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial keeps its planned round, counts as finished, and gets no more rounds."""
    monkeypatch.setattr("epochcost.execute.patience.look_at_host", lambda: CALM)
    measure = Worker.measure
    measured: list[Job] = []

    def fail_later(worker: Worker, job: Job, on_progress: OnProgress) -> Measurement:
        measured.append(job)
        if len(measured) > 1:
            raise TrialFailed("worker: killed")
        return measure(worker, job, on_progress)

    monkeypatch.setattr(Worker, "measure", fail_later)
    one = Plan(assignment.plan.trials[:1])
    events: list[Event] = []
    (outcome,) = run_trials(replace(assignment, plan=one, patience_seconds=60), events.append)
    assert isinstance(outcome, Finished)
    assert round_count(outcome.result.measurement) == 1
    assert [event.rounds_kept for event in events if isinstance(event, Failed)] == [1]


def test_what_is_precise_gets_a_round_only_if_it_was_disturbed() -> None:
    """A precise mean needs no round, unless other programs disturbed all of its rounds."""
    precise = make_result(batch_size=32, samples=(0.0100, 0.0101) * 20)

    def more_rounds(conditions: Conditions) -> list[int]:
        measurement = precise.measurement.model_copy(update={"conditions": conditions})
        result = precise.model_copy(update={"measurement": measurement})
        machine, numbers = Machine(CALM), []
        for visit in machine.patience(2).more_rounds({}, lambda: [result]):
            numbers.append(visit.number)
            machine.sleep(1)
        return numbers

    assert more_rounds(CALM) == []
    assert more_rounds(BUSY) == [2, 2]


def test_the_least_precise_comes_first_and_each_in_its_turn(assignment: Assignment) -> None:
    """Added rounds alternate between the trials."""
    outcomes = run_trials(assignment, lambda _: None)
    found = [one.result for one in outcomes if isinstance(one, Finished)]
    machine = Machine(CALM)
    order = []
    for visit in machine.patience(4).more_rounds({}, lambda: found):
        order.append(visit.trial.id)
        assert (visit.number, visit.extra) == (2, 1)
        machine.sleep(1)
    assert len(order) == 4
    assert order[:2] == order[2:]
    assert {*order} == {one.trial.id for one in found}
