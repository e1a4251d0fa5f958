"""Whole epochs meet every example once, in another order each, and count what they wait for."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from epochcost.measure.epochs import run_epochs
from epochcost.measure.job import EpochFiles, Job, JobError, Message
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, graph_inputs, initial_parameters
from epochcost.measure.worker import measure

EXAMPLES = np.arange(10, dtype=np.float32)


def stepper_of(job: Job) -> Stepper:
    """Bind a job as the worker does."""
    session = open_session(job.graph, job.provider, job.session)
    inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
    return Stepper(session, job.provider, job.mode, inputs, job.carried, job.session)


def files(folder: Path, examples: np.ndarray = EXAMPLES, **fields: int) -> EpochFiles:
    """Two steps of four of ten examples: the last two of an epoch's order are dropped."""
    np.save(folder / "epoch.npy", examples)
    settings = {"examples": 10, "batch_size": 4, "steps": 2, "count": 1, "seed": 5}
    return EpochFiles.model_validate({"arrays": {"g": folder / "epoch.npy"}} | settings | fields)


@pytest.fixture(params=[False, True], ids=["in turn", "ahead"])
def ahead(request: pytest.FixtureRequest) -> bool:
    """Both ways of reading, of which the result knows nothing."""
    return bool(request.param)


def ignore(samples: int, width: float | None) -> None:
    """Show nothing."""


def test_an_epoch_is_a_permutation_without_its_last_incomplete_batch(
    counting: Job, tmp_path: Path, ahead: bool
) -> None:
    """What w moved by is the sum of eight different examples of the ten."""
    step = stepper_of(counting)
    found = run_epochs(files(tmp_path), step, time.perf_counter, ignore, ahead=ahead)
    values = step.carried_values()
    order = np.random.default_rng([5, 0, 0]).permutation(10)[:8].reshape(2, 4)
    np.testing.assert_allclose(values["w"], 1 - 0.5 * EXAMPLES[order].sum(axis=0))
    np.testing.assert_array_equal(values["v"], [2, 2])
    assert (found.steps, found.examples_on_disk, len(found.epochs)) == (2, 10, 1)
    assert 0 <= found.epochs[0].waiting_seconds <= found.epochs[0].seconds


def test_each_epoch_has_an_order_of_its_own(counting: Job, tmp_path: Path, ahead: bool) -> None:
    """Three epochs leave out different examples, and the steps go on counting."""
    step = stepper_of(counting)
    found = run_epochs(files(tmp_path, count=3), step, time.perf_counter, ignore, ahead=ahead)
    orders = [np.random.default_rng([5, n, 0]).permutation(10)[:8].reshape(2, 4) for n in range(3)]
    moved = sum(EXAMPLES[order].sum(axis=0) for order in orders)
    np.testing.assert_allclose(step.carried_values()["w"], 1 - 0.5 * moved, rtol=1e-6)
    assert len(found.epochs) == 3
    assert step.steps_taken == 6


def test_an_epoch_pauses_for_samples_that_count_apart(
    counting: Job, tmp_path: Path, ahead: bool
) -> None:
    """Every example is met once more than samples meet it: the pool's ahead, else other batches."""
    step = stepper_of(counting)
    asked = files(tmp_path, steps=10, between=3).model_copy(update={"examples": 40})
    found = run_epochs(asked, step, time.perf_counter, ignore, ahead=ahead)
    assert (found.sampled_steps, step.steps_taken) == (3, 13)
    assert found.step_seconds is not None
    (epoch,) = found.epochs
    assert len(epoch.parts_seconds) == 10
    assert sum(epoch.parts_seconds) == epoch.seconds
    alone = stepper_of(counting)
    if ahead:
        for _ in range(3):
            alone()
    moved = EXAMPLES[order(0)].sum(axis=0)
    if not ahead:
        moved += EXAMPLES[order(1)[:3]].sum(axis=0)
    np.testing.assert_allclose(
        step.carried_values()["w"], alone.carried_values()["w"] - 0.5 * moved, rtol=1e-5
    )


def order(draw: int) -> np.ndarray:
    """Ten steps of an epoch of 40, which ten stored examples stand for."""
    return np.random.default_rng([5, 0, draw]).permutation(40).reshape(10, 4) % 10


def test_stored_examples_are_met_again_where_the_epoch_has_more(
    counting: Job, tmp_path: Path, ahead: bool
) -> None:
    """Five stored examples stand for ten: each is met twice or once less."""
    step = stepper_of(counting)
    found = run_epochs(files(tmp_path, EXAMPLES[:5]), step, time.perf_counter, ignore, ahead=ahead)
    order = np.random.default_rng([5, 0, 0]).permutation(10)[:8].reshape(2, 4) % 5
    np.testing.assert_allclose(step.carried_values()["w"], 1 - 0.5 * EXAMPLES[order].sum(axis=0))
    assert found.examples_on_disk == 5


def test_the_worker_runs_epochs_after_its_samples(counting: Job, tmp_path: Path) -> None:
    """They are in the measurement and in no sample, and their phase is told."""
    heard: list[Message] = []
    job = counting.model_copy(update={"epochs": files(tmp_path, count=2)})
    measured = measure(job, tmp_path, heard.append)
    assert measured.epochs is not None
    assert len(measured.epochs.epochs) == 2
    samples = len(measured.warmup_seconds) + len(measured.samples_seconds)
    assert measured.steps_taken == 1 + samples + 4
    phases = [one.progress.phase for one in heard if one.progress]
    assert phases[-1] == "epochs"


def test_files_that_do_not_fit_are_refused(counting: Job, tmp_path: Path, ahead: bool) -> None:
    """Another type, an input that the graph lacks, and no array at all."""
    step = stepper_of(counting)
    with pytest.raises(JobError, match="expected float32"):
        run_epochs(
            files(tmp_path, EXAMPLES.astype(np.float64)),
            step,
            time.perf_counter,
            ignore,
            ahead=ahead,
        )
    strange = files(tmp_path).model_copy(update={"arrays": {"h": tmp_path / "epoch.npy"}})
    with pytest.raises(JobError, match="no input of the graph is called 'h'"):
        run_epochs(strange, step, time.perf_counter, ignore, ahead=ahead)
    (tmp_path / "epoch.npy").write_bytes(b"nothing")
    with pytest.raises(JobError, match="expected an array"):
        run_epochs(
            strange.model_copy(update={"arrays": {"g": tmp_path / "epoch.npy"}}),
            step,
            time.perf_counter,
            ignore,
            ahead=ahead,
        )


def test_a_reader_that_fails_fails_the_epoch(counting: Job, tmp_path: Path, ahead: bool) -> None:
    """Examples of the wrong size are told by the step that needs them."""
    step = stepper_of(counting)
    wrong = np.zeros((10, 3), np.float32)
    with pytest.raises(JobError, match="reading an epoch's batch failed"):
        run_epochs(files(tmp_path, wrong), step, time.perf_counter, ignore, ahead=ahead)
