"""Whole epochs of the tiny project: run and stored, or left out with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.execute.assignment import Advanced, Assignment, Event, Finished
from epochcost.execute.epochs import EpochRequest
from epochcost.execute.planning import RunRequest, plan_run
from epochcost.execute.run import run_trials
from epochcost.results.records import WholeEpochs
from epochcost.results.store import ResultStore
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


@pytest.fixture(name="assignment")
def assignment_fixture(tmp_path: Path) -> Assignment:
    """The tiny project's training on the CPU at a batch of 4."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    planned = plan_run(catalogue, RunRequest(providers=("cpu",)))
    trials = [one for one in planned.trials if (one.mode, one.batch_size) == ("training", 4)]
    return Assignment(catalogue, trials, "local", ResultStore(tmp_path / "results"))


def epochs_of(assignment: Assignment, asked: EpochRequest) -> WholeEpochs | None:
    """What a run of one trial stores of whole epochs."""
    (outcome,) = run_trials(replace(assignment, epochs=asked), lambda _: None)
    assert isinstance(outcome, Finished), outcome
    (trial,) = assignment.trials
    kept = assignment.store.find(trial, "local", outcome.result.environment.fingerprint)
    assert kept == outcome.result
    return kept.measurement.epochs


def test_a_training_is_followed_by_its_epochs(assignment: Assignment) -> None:
    """1000 examples in batches of 4 are 250 steps; progress is told as that of the trial."""
    heard: list[Event] = []
    (outcome,) = run_trials(replace(assignment, epochs=EpochRequest(2)), heard.append)
    assert isinstance(outcome, Finished), outcome
    epochs = outcome.result.measurement.epochs
    assert epochs is not None
    assert (epochs.steps, len(epochs.epochs), epochs.left_out) == (250, 2, None)
    assert epochs.examples_on_disk == 1000
    assert epochs.sampled_steps == 2 * (25 - 10 - 1)
    assert epochs.step_seconds is not None
    assert "epochs" in [event.progress.phase for event in heard if isinstance(event, Advanced)]


def test_inference_has_no_epochs(assignment: Assignment) -> None:
    """Asking for epochs leaves an inference as it is."""
    planned = plan_run(assignment.catalogue, RunRequest(providers=("cpu",)))
    inference = [one for one in planned.trials if one.mode == "inference"]
    assert epochs_of(replace(assignment, trials=inference), EpochRequest(1)) is None


def test_an_epoch_beyond_the_limit_is_never_begun(assignment: Assignment) -> None:
    """The reason says how long it would take and what to do; the trial is kept."""
    epochs = epochs_of(assignment, EpochRequest(1, most_seconds=1e-9))
    assert epochs is not None
    assert epochs.epochs == ()
    assert "--epoch-limit" in str(epochs.left_out)


def test_a_failed_epoch_costs_no_result(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full when the data set is written is a reason and no failed trial."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("epochcost.execute.epochs.write_epoch", full)
    epochs = epochs_of(assignment, EpochRequest(1))
    assert epochs is not None
    assert "No space left" in str(epochs.left_out)


def test_a_long_epoch_is_foretold_by_a_tenth_of_it(assignment: Assignment) -> None:
    """Warm-up and the profiled step are part of the tenth of 1000 steps."""
    epochs = epochs_of(assignment, EpochRequest(1, examples=4000))
    assert epochs is not None
    assert epochs.sampled_steps == 100 - 10 - 1


def test_a_shortened_epoch_is_as_long_as_asked(assignment: Assignment) -> None:
    """With 100 examples an epoch in batches of 4 has 25 steps."""
    epochs = epochs_of(assignment, EpochRequest(1, examples=100))
    assert epochs is not None
    assert (epochs.steps, epochs.examples_on_disk) == (25, 100)
