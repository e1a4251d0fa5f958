"""Sweeps on this machine end when memory runs out, and store the limit."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.execute import run
from epochcost.execute.assignment import (
    Assignment,
    Event,
    Exhausted,
    Finished,
    RoundStored,
    Skipped,
    Swept,
)
from epochcost.execute.planning import plan_run
from epochcost.execute.run import is_out_of_memory, run_trials
from epochcost.measure.job import OutOfMemory, TrialFailed
from epochcost.plan.make import Plan, RunRequest
from epochcost.plan.sweep import Sweep
from epochcost.plan.trial import Trial
from epochcost.results.rounds import round_count
from epochcost.results.sidecars import BatchLimit
from epochcost.results.store import ResultStore, load_sidecars
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from sound_results import sound_results
from tiny_project import write_tiny_project

ROOT = Path(__file__).parents[2]
MIB = 2**20


def brief(trial: Trial) -> Trial:
    """The trial with half a second of timing."""
    changes = {
        "minimum_samples": 10,
        "relative_half_width": Decimal("0.9"),
        "budget_seconds": Decimal("0.5"),
    }
    return trial.model_copy(update=changes)


def mnist_sweep(mode: Mode, first: int, store: Path) -> Assignment:
    """A sweep of the MNIST MLP from batch ``first``."""
    catalogue = load_catalogue(ROOT)
    planned = plan_run(
        catalogue, RunRequest(studies=("starter",), models=("mnist-mlp",), providers=("cpu",))
    )
    trial = next(brief(one) for one in planned.trials if one.mode == mode)
    smallest = trial.model_copy(update={"batch_size": first})
    # Memory must end the sweep, not the time of a step on a busy machine.
    patient = smallest.model_copy(update={"budget_seconds": Decimal(8)})
    sweep = Sweep(patient, 60_000, "an epoch")
    return Assignment(catalogue, Plan((), sweeps=(sweep,)), "local", ResultStore(store))


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "first"), [("inference", 8192), ("training", 2048)])
def test_memory_ends_in_earnest(
    mode: Mode, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The MLP in 320 MiB: batches grow until memory runs out, and the limit is stored."""
    # On a busy machine the largest sizes may look slower.
    monkeypatch.setattr("epochcost.plan.sweep._end_by_throughput", lambda _: None)
    monkeypatch.setattr(run, "trial_room_bytes", lambda _: 320 * MIB)
    assignment = mnist_sweep(mode, first, tmp_path)
    events: list[Event] = []
    outcomes = run_trials(assignment, events.append)
    assert all(isinstance(outcome, Finished) for outcome in outcomes), outcomes
    (limit,) = load_sidecars(tmp_path, BatchLimit).records.values()
    assert limit.cause == "memory"
    assert "ran out of memory of 320.0 MiB; batch" in limit.reason
    largest, failed = limit.largest_that_ran, min(one.batch_size for one in limit.failed)
    assert largest is not None
    assert failed is not None
    assert first <= largest < failed < 60_000
    assert failed - largest <= largest / 16
    assert {one.batch_size for one in limit.failed} == {
        event.trial.batch_size for event in events if isinstance(event, Exhausted)
    }
    stored = {one.trial.batch_size: one for one in sound_results(tmp_path)}
    assert tuple(sorted(stored)) == limit.sizes
    held = [stored[size].peak_bytes for size in limit.sizes]
    # The limit is of a process's own data; what it held has pages of libraries too.
    assert all(one is not None and one < 1.2 * 320 * MIB for one in held)
    assert [event.limit for event in events if isinstance(event, Swept)] == [limit]

    again: list[Event] = []
    resumed = run_trials(replace(assignment, resume=True), again.append)
    assert all(isinstance(outcome, Skipped) for outcome in resumed)
    assert not [event for event in again if isinstance(event, Finished)]
    (known,) = load_sidecars(tmp_path, BatchLimit).records.values()
    assert known.sizes == limit.sizes


@pytest.fixture(name="assignment")
def assignment_fixture(tmp_path: Path) -> Assignment:
    """A sweep of the tiny training from 2 to 8 in two rounds; one size is also a listed trial."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    listed = plan_run(catalogue, RunRequest(providers=("cpu",))).trials[1]
    sweep = Sweep(listed, 8, "an epoch", rounds=2)
    store = ResultStore(tmp_path / "results")
    return Assignment(catalogue, Plan((listed,), sweeps=(sweep,)), "local", store)


@pytest.mark.slow
def test_later_rounds_repeat_what_ran(assignment: Assignment) -> None:
    """The sweep is the first round, and a listed batch size is not measured a second time."""
    events: list[Event] = []
    outcomes = run_trials(assignment, events.append)
    assert [outcome.trial.batch_size for outcome in outcomes] == [2, 4, 8]
    assert all(isinstance(outcome, Finished) for outcome in outcomes)
    kept = [event.trial.batch_size for event in events if isinstance(event, RoundStored)]
    assert kept == [2, 4, 8]
    stored = sound_results(assignment.store.folder)
    assert [len(result.measurement.rounds) for result in stored] == [2, 2, 2]
    (limit,) = load_sidecars(assignment.store.folder, BatchLimit).records.values()
    assert (limit.cause, limit.sizes, limit.failed) == ("maximum", (2, 4, 8), ())


@pytest.mark.slow
def test_a_listed_size_keeps_its_larger_number_of_rounds(assignment: Assignment) -> None:
    """A study that lists a batch size gets its own rounds of it, also if a sweep has fewer."""
    (listed,), (sweep,) = assignment.plan.trials, assignment.plan.sweeps
    plan = Plan((listed,), rounds={listed.id: 3}, sweeps=(replace(sweep, largest=4, rounds=1),))
    outcomes = run_trials(replace(assignment, plan=plan), lambda _: None)
    assert all(isinstance(outcome, Finished) for outcome in outcomes)
    stored = sound_results(assignment.store.folder)
    rounds = {one.trial.batch_size: round_count(one.measurement) for one in stored}
    assert rounds == {2: 3, 4: 1}


def test_an_interrupted_sweep_goes_on(assignment: Assignment) -> None:
    """A resumed sweep keeps the stored batch sizes and continues with the larger one."""
    begun = Sweep(assignment.plan.sweeps[0].trial, 4, "an epoch")
    run_trials(replace(assignment, plan=Plan((), sweeps=(begun,))), lambda _: None)
    events: list[Event] = []
    outcomes = run_trials(replace(assignment, resume=True), events.append)
    assert all(isinstance(outcome, Finished) for outcome in outcomes)
    started_at = {o.trial.batch_size: o.result.measurement.started_at for o in outcomes}
    assert started_at[2] < started_at[4] < started_at[8]
    kept = [event for event in events if isinstance(event, RoundStored)]
    assert [len(event.result.measurement.rounds) for event in kept] == [0, 0, 1]
    stored = sound_results(assignment.store.folder)
    assert [len(result.measurement.rounds) for result in stored] == [2, 2, 2]


def test_memory_that_ends_while_batches_are_made(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch too large to allocate counts as a failed size of the sweep."""
    monkeypatch.setattr(run, "trial_room_bytes", lambda _: 100)
    small = replace(assignment, plan=replace(assignment.plan, trials=()))
    events: list[Event] = []
    assert run_trials(small, events.append) == ()
    first, _ = [event for event in events if isinstance(event, Exhausted)]
    assert "expected memory, got MemoryError" in str(first.error)
    (limit,) = load_sidecars(small.store.folder, BatchLimit).records.values()
    assert (limit.cause, limit.largest_that_ran, min(one.batch_size for one in limit.failed)) == (
        "memory",
        None,
        1,
    )


def test_forms_of_the_end_of_memory() -> None:
    """Exhausted memory is recognised by its error type, or by a worker's error text."""
    assert is_out_of_memory(OutOfMemory("killed by SIGKILL"))
    assert is_out_of_memory(TrialFailed("worker: got Cannot allocate memory: free some"))
    assert not is_out_of_memory(TrialFailed("worker: killed by SIGSEGV"))
