"""Trials run in this process: real models learn, and a failure ends only its own trial."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import psutil
import pytest

from epochcost.errors import CapabilityError
from epochcost.execute.assignment import (
    Advanced,
    Assignment,
    Event,
    Failed,
    Finished,
    RoundStored,
    Skipped,
    Started,
)
from epochcost.execute.planning import plan_run
from epochcost.execute.run import run_trials
from epochcost.measure.environment import detect_environment
from epochcost.measure.job import Job
from epochcost.measure.trial import OnProgress, Worker
from epochcost.plan.make import Plan, RunRequest
from epochcost.plan.trial import Trial
from epochcost.results.records import FORMAT_VERSION, Measurement
from epochcost.results.store import ResultStore
from epochcost.specs.loader import load_catalogue
from sound_results import sound_results
from tiny_project import write_tiny_project

ROOT = Path(__file__).parents[2]
# Enough steps to learn whatever step is the last: RMSprop's first hundred throw the loss about by a
# third. A wide interval, so that their number alone ends the trial.
_STEPS = {"mnist-mlp": 300, "mnist-cnn": 80}


def ignore(_: Event) -> None:
    """Ignore an event of the run."""


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mnist-mlp", "mnist-cnn"])
def test_the_real_models_learn(model: str, tmp_path: Path) -> None:
    """Real training steps lower the loss on batches that were never trained on."""
    catalogue = load_catalogue(ROOT)
    planned = plan_run(catalogue, RunRequest(models=(model,), providers=("cpu",)))
    (trial,) = (t for t in planned.trials if (t.mode, t.batch_size) == ("training", 32))
    patient = trial.model_copy(
        update={
            "minimum_samples": _STEPS[model],
            "relative_half_width": Decimal("0.9"),
            "budget_seconds": Decimal(120),
        }
    )
    assignment = Assignment(catalogue, Plan((patient,)), "local", ResultStore(tmp_path))
    (outcome,) = run_trials(assignment, ignore)
    assert isinstance(outcome, Finished), outcome
    measured = outcome.result.measurement
    assert measured.steps_taken >= _STEPS[model]
    assert measured.held_out_loss_before is not None
    assert measured.held_out_loss_after is not None
    assert measured.held_out_loss_after < 0.8 * measured.held_out_loss_before


@pytest.fixture(name="assignment")
def assignment_fixture(tmp_path: Path) -> Assignment:
    """The tiny project's inference trial and its first training trial."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    trials = plan_run(catalogue, RunRequest(providers=("cpu",))).trials[:2]
    return Assignment(catalogue, Plan(trials), "local", ResultStore(tmp_path / "results"))


def with_changed_graph(trial: Trial) -> Trial:
    """The trial with the digest of another version of its ONNX file."""
    return trial.model_copy(update={"graph_sha256": "0" * 64})


def test_a_failed_trial_does_not_stop_the_others(assignment: Assignment) -> None:
    """The first trial fails, the second is stored, and a resumed run skips the second."""
    first, second = assignment.plan.trials
    trials = (with_changed_graph(first), second)
    events: list[Event] = []
    broken = Assignment(assignment.catalogue, Plan(trials), "local", assignment.store, resume=True)
    failed, finished = run_trials(broken, events.append)
    assert isinstance(failed, Failed)
    assert "changed after the run was planned" in str(failed.error)
    assert isinstance(finished, Finished)
    assert sound_results(assignment.store.folder) == (finished.result,)
    assert [event for event in events if isinstance(event, Started)] == [
        Started(trials[0], 1, 2),
        Started(trials[1], 2, 2),
    ]
    (again,) = run_trials(
        Assignment(assignment.catalogue, Plan((second,)), "local", assignment.store, resume=True),
        ignore,
    )
    assert again == Skipped(second, finished.result)


def test_a_slip_of_ours_costs_one_trial(assignment: Assignment) -> None:
    """An unexpected error fails its trial with file and line; the next trial is measured."""
    first, second = assignment.plan.trials
    impossible = first.model_copy(update={"seed": "eight"})
    events: list[Event] = []
    both = Assignment(assignment.catalogue, Plan((impossible, second)), "local", assignment.store)
    failed, finished = run_trials(both, events.append)
    assert isinstance(failed, Failed)
    assert re.search(r"Error in \w+\.py:\d+: .*please report it", str(failed.error))
    assert failed.error.exit_code == CapabilityError.exit_code
    assert isinstance(finished, Finished)


def test_without_resume_a_trial_is_measured_again(assignment: Assignment) -> None:
    """The later result replaces the earlier one."""
    once = Assignment(
        assignment.catalogue, Plan(assignment.plan.trials[:1]), "local", assignment.store
    )
    (first,) = run_trials(once, ignore)
    (second,) = run_trials(once, ignore)
    assert isinstance(first, Finished)
    assert isinstance(second, Finished)
    assert sound_results(assignment.store.folder) == (second.result,)
    assert second.result.measurement.started_at > first.result.measurement.started_at


def test_a_result_says_what_surrounded_it(assignment: Assignment) -> None:
    """The result has the host's conditions while sampling and the digests of its specs."""
    once = Assignment(
        assignment.catalogue, Plan(assignment.plan.trials[:1]), "local", assignment.store
    )
    (outcome,) = run_trials(once, ignore)
    assert isinstance(outcome, Finished)
    result = outcome.result
    watched = result.measurement.conditions
    assert watched is not None
    assert 0 < watched.seconds < result.measurement.wall_seconds
    declared = assignment.catalogue.files["models/tiny"].read_bytes()
    assert result.spec_files["models/tiny"] == hashlib.sha256(declared).hexdigest()
    assert result.spec_files.keys() == {"models/tiny", "hardware/local"}
    assert result.contradictions == ()


def test_a_spec_removed_during_the_run_costs_no_trial(assignment: Assignment) -> None:
    """The result has the digest of the spec with which the run began."""
    path = assignment.catalogue.files["models/tiny"]
    declared = path.read_bytes()

    def remove_spec(_: Event) -> None:
        path.unlink(missing_ok=True)

    (outcome,) = run_trials(replace(assignment, plan=Plan(assignment.plan.trials[:1])), remove_spec)
    assert isinstance(outcome, Finished)
    digest = hashlib.sha256(declared).hexdigest()
    assert outcome.result.spec_files["models/tiny"] == digest


def test_a_machine_taken_as_is_is_marked(assignment: Assignment) -> None:
    """The stored result says how this machine differs from the named hardware."""
    once = Assignment(
        assignment.catalogue, Plan(assignment.plan.trials[:1]), "giant", assignment.store
    )
    (outcome,) = run_trials(once, ignore)
    assert isinstance(outcome, Finished)
    (stored,) = sound_results(assignment.store.folder)
    assert len(stored.contradictions) == 1
    assert stored.contradictions[0].endswith("logical CPUs, not 4099")


def in_rounds(assignment: Assignment, rounds: int, **changes: bool) -> Assignment:
    """The assignment's trials, each in ``rounds`` rounds."""
    asked = {trial.id: rounds for trial in assignment.plan.trials}
    return replace(assignment, plan=replace(assignment.plan, rounds=asked), **changes)


def test_rounds_interleave_the_trials(assignment: Assignment) -> None:
    """Every round visits every trial, and a result holds the samples of all its rounds."""
    # Two seconds a round, so that a stall of the machine does not end one after three samples.
    patient = [
        trial.model_copy(update={"budget_seconds": Decimal(4)}) for trial in assignment.plan.trials
    ]
    assignment = replace(assignment, plan=Plan(tuple(patient)))
    events: list[Event] = []
    outcomes = run_trials(in_rounds(assignment, 2), events.append)
    started = [(event.trial, event.round) for event in events if isinstance(event, Started)]
    for number in (1, 2):
        turn = started[2 * number - 2 : 2 * number]
        assert {trial.id for trial, _ in turn} == {trial.id for trial in assignment.plan.trials}
        assert {round_ for _, round_ in turn} == {number}
    assert sum(isinstance(event, RoundStored) for event in events) == 2
    for outcome in outcomes:
        assert isinstance(outcome, Finished)
        measured = outcome.result.measurement
        assert len(measured.rounds) == 2
        assert min(measured.samples_by_round) >= 10
        times = [one.started_at for one in measured.rounds]
        assert times == sorted(times)
    stored = sound_results(assignment.store.folder)
    assert {one.trial_id: one for one in stored} == {
        outcome.trial.id: outcome.result for outcome in outcomes if isinstance(outcome, Finished)
    }


def test_fp32_is_compared_with_once(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs in TF32 are compared with fp32 in the first round only."""
    asked: list[bool] = []
    measure = Worker.measure

    def watched(worker: Worker, job: Job, on_progress: OnProgress) -> Measurement:
        asked.append(job.reference is not None)
        return measure(worker, job, on_progress)

    monkeypatch.setattr(Worker, "measure", watched)
    trials = [assignment.plan.trials[0].model_copy(update={"precision": "tf32"})]
    (outcome,) = run_trials(in_rounds(replace(assignment, plan=Plan(tuple(trials))), 3), ignore)
    assert isinstance(outcome, Finished), outcome
    assert asked == [True, False, False]
    assert outcome.result.measurement.agreement is not None


def test_resuming_does_the_missing_rounds(assignment: Assignment) -> None:
    """A resumed run keeps stored rounds and measures only the missing ones."""
    once = replace(assignment, plan=Plan(assignment.plan.trials[:1]))
    (first,) = run_trials(in_rounds(once, 2), ignore)
    events: list[Event] = []
    (more,) = run_trials(in_rounds(once, 3, resume=True), events.append)
    assert isinstance(first, Finished)
    assert isinstance(more, Finished)
    assert [event.round for event in events if isinstance(event, Started)] == [3]
    before, after = first.result.measurement, more.result.measurement
    assert after.rounds[:2] == before.rounds
    assert after.samples_seconds[: len(before.samples_seconds)] == before.samples_seconds
    (again,) = run_trials(in_rounds(once, 2, resume=True), ignore)
    assert again == Skipped(once.plan.trials[0], more.result)


def test_resuming_measures_a_refused_result_again(assignment: Assignment) -> None:
    """A result that ``check --results`` refuses, here for a wrong clock, is replaced."""
    once = replace(assignment, plan=Plan(assignment.plan.trials[:1]))
    (first,) = run_trials(once, ignore)
    assert isinstance(first, Finished)
    measurement = first.result.measurement
    early = measurement.started_at - dt.timedelta(days=365)
    refused = measurement.model_copy(update={"started_at": early})
    once.store.write(first.result.model_copy(update={"measurement": refused}))
    (second,) = run_trials(replace(once, resume=True), ignore)
    assert isinstance(second, Finished)
    assert sound_results(once.store.folder) == (second.result,)


def test_a_trial_that_fails_in_a_later_round_keeps_the_earlier(assignment: Assignment) -> None:
    """After a worker is killed in round 2, its trial keeps round 1; the other has all rounds."""
    victim, other = assignment.plan.trials
    rounds_begun: list[int] = []

    def kill_in_second(event: Event) -> None:
        if isinstance(event, Started) and event.trial == victim:
            rounds_begun.append(event.round)
        if isinstance(event, Advanced) and event.trial == victim and rounds_begun == [1, 2]:
            workers_of_this_process()[0].kill()

    failed, finished = run_trials(in_rounds(assignment, 3), kill_in_second)
    assert isinstance(failed, Failed)
    assert failed.rounds_kept == 1
    assert rounds_begun == [1, 2]
    assert isinstance(finished, Finished)
    kept = {one.trial_id: one for one in sound_results(assignment.store.folder)}
    assert len(kept[victim.id].measurement.samples_by_round) == 1
    assert len(kept[other.id].measurement.rounds) == 3


def workers_of_this_process() -> list[psutil.Process]:
    """The running worker processes of this process."""
    return [
        child
        for child in psutil.Process().children()
        if "epochcost.measure.worker" in " ".join(child.cmdline())
    ]


@pytest.mark.parametrize("resume", [False, True])
def test_a_result_of_a_newer_version_is_not_replaced(assignment: Assignment, resume: bool) -> None:
    """The newer file stays as it was and its trial fails; the other trial is measured."""
    newer, other = assignment.plan.trials
    path = assignment.store.path_of(newer, "local", detect_environment().fingerprint)
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"format_version": {FORMAT_VERSION + 1}}}')
    before = path.read_bytes()
    failed, finished = run_trials(replace(assignment, resume=resume), ignore)
    assert isinstance(failed, Failed)
    assert failed.trial == newer
    assert "a newer epochcost wrote this file; update epochcost" in str(failed.error)
    assert failed.error.exit_code == 1
    assert isinstance(finished, Finished)
    assert finished.trial == other
    assert path.read_bytes() == before
