"""A training that is killed for real: the same weights, and every lost second accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.execute.interruptions import (
    InterruptedTraining,
    Start,
    random_ends,
    run_interrupted,
)
from epochcost.execute.training import PreparedTraining
from epochcost.measure.job import TrialFailed
from real_trainings import prepared_digits, run


@pytest.fixture(scope="module", name="interrupted")
def interrupted_fixture(tmp_path_factory: pytest.TempPathFactory) -> InterruptedTraining:
    """A training of some seconds, killed twice."""
    prepared = _prepared(tmp_path_factory.mktemp("data"), save_seconds=0.3)
    return run_interrupted(prepared, 3, tmp_path_factory.mktemp("killed"), iter((1.8, 1.8)))


def _prepared(folder: Path, save_seconds: float = 60.0) -> PreparedTraining:
    return prepared_digits(folder, save_seconds, epochs=400, evaluate_every=4000)


def test_a_killed_training_has_the_same_weights(
    interrupted: InterruptedTraining, tmp_path: Path
) -> None:
    """What was lost was done again, to the last bit."""
    whole = run(_prepared(tmp_path), tmp_path)
    assert whole is not None
    assert interrupted.repeat.weights_sha256 == whole.weights_sha256


def test_every_second_is_accounted_for(interrupted: InterruptedTraining) -> None:
    """Starts, work and what was lost are within what ran, and no loss is of a start's time."""
    assert [one.interrupted for one in interrupted.starts] == [
        *[True] * interrupted.interruptions,
        False,
    ]
    known = interrupted.starting_seconds + interrupted.work_seconds + interrupted.rework_seconds
    assert known <= interrupted.running_seconds
    assert 1 <= interrupted.interruptions <= 2
    for one in interrupted.starts:
        assert 0 <= one.lost <= one.lasted - one.until_work


def test_what_is_expected_of_measured_starts() -> None:
    """Two starts of 2 s around 3 s of loss: the closed form has the work, saves and starts."""
    starts = (Start(10.0, 2.0, 3.0, interrupted=True), Start(99.0, 2.0, 0.0, interrupted=False))
    repeat = _Repeat(step_seconds=90.0, evaluation_seconds=10.0, saving_seconds=5.0)
    found = InterruptedTraining(repeat, starts, interval_seconds=10.0)  # type: ignore[arg-type]
    job = found.job(per_hour=36.0)
    assert (float(job.work), float(job.save), float(job.interval or 0)) == (100.0, 0.5, 10.0)
    assert float(job.rate) == pytest.approx(0.01)
    expected = found.expected(per_hour=36.0)
    assert float(expected.rework) > 0
    assert found.rework_seconds == 3.0


class _Repeat:
    """The times of a repeat."""

    def __init__(self, **times: float) -> None:
        vars(self).update(times)


def test_ends_come_at_the_rate() -> None:
    """A thousand of them at 60 an hour last a minute on average."""
    ends = random_ends(60.0, seed=1)
    assert sum(next(ends) for _ in range(1000)) / 1000 == pytest.approx(60, rel=0.1)


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    """A damaged state is nothing to go on from, in any start."""
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed/state.zip").write_bytes(b"no archive")
    with pytest.raises(TrialFailed, match="expected the saved state of this training"):
        run_interrupted(prepared_digits(tmp_path), 3, tmp_path / "killed", iter(()))
