"""Outputs compared with fp32: the stored differences, and outputs that are no numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from epochcost.measure.agreement import agreement, held_out_loss, require_finite
from epochcost.measure.job import CarriedValue, Evaluation, Job, JobError, Reference

X = np.array([[[1, 2, 3, 4], [-4, 3, -2, 1]]], "f4")


W = np.array([[3, 0, 1], [0, 3, 1], [1, 0, 1], [0, 1, 1]], "f4")


EXACT = np.maximum(X[0] @ W, 0)


@pytest.fixture(name="compared")
def compared_fixture(
    job_of: Callable[..., Job], product: onnx.ModelProto
) -> Callable[[NDArray[np.float32]], object]:
    """A function from outputs of the first step of y = relu(x w) to their agreement."""
    job = job_of(product, {"x": X}, {"w": W}, mode="inference", outputs=("y",), precision="fp16")
    reference = Reference(graph=job.graph, batches=job.batches, examples=2)
    return lambda got: agreement(job.model_copy(update={"reference": reference}), {"y": got})


def test_equal_outputs_differ_by_nothing(
    compared: Callable[[NDArray[np.float32]], object],
) -> None:
    """Outputs equal to the reference's, from the same parameters and batch, do not differ."""
    assert compared(EXACT).model_dump() == {  # type: ignore[attr-defined]
        "examples": 2,
        "outputs": (
            {
                "output": "y",
                "maximum_absolute": 0.0,
                "relative_to_norm": 0.0,
                "largest_changed": 0.0,
            },
        ),
    }


def test_differences_are_by_element_by_norm_and_by_row(
    compared: Callable[[NDArray[np.float32]], object],
) -> None:
    """A changed element becomes its row's largest, so half of the two rows changed."""
    got = EXACT.copy()
    got[0, 0] += 8
    (output,) = compared(got).outputs  # type: ignore[attr-defined]
    assert output.maximum_absolute == 8
    assert output.relative_to_norm == pytest.approx(8 / np.linalg.norm(EXACT))
    assert output.largest_changed == 0.5


def test_numbers_beyond_the_range_are_refused(
    compared: Callable[[NDArray[np.float32]], object],
) -> None:
    """A trial is refused if outputs overflow in its precision."""
    got = EXACT.copy()
    got[0, 1] = np.inf
    with pytest.raises(JobError, match="'y': expected finite numbers, as in fp32, got some beyond"):
        compared(got)


def test_the_loss_is_the_mean_over_the_batches(counting: Job) -> None:
    """Batches that sum to 0 and 8, each added to the 4 of w, have a mean loss of 8."""
    assert counting.evaluation is not None
    held_out = np.stack([np.zeros(4, "f4"), np.full(4, 2, "f4")])
    np.savez(counting.evaluation.batches, g=held_out)
    assert held_out_loss(counting, {"w": np.ones(4, "f4")}) == pytest.approx(8.0)


def test_a_missing_parameter_is_named(counting: Job) -> None:
    """The message names the parameter that an evaluation graph lacks."""
    with pytest.raises(JobError, match=r"evaluation\.onnx: input 'w' has no value"):
        held_out_loss(counting, {})


def test_a_diverged_training_is_an_error(counting: Job) -> None:
    """A trial is refused if its held-out loss is not finite."""
    with pytest.raises(JobError, match="expected finite numbers, got nan: training diverged"):
        held_out_loss(counting, {"w": np.full(4, np.nan, "f4")})


def test_a_loss_that_overflowed_in_the_last_step_is_an_error(counting: Job) -> None:
    """Without held-out data, a trial is refused if the last step's loss is not finite."""
    require_finite(counting, lambda _: np.float32([4.0]))
    with pytest.raises(JobError, match=r"output 'loss' of the last step: .* got inf"):
        require_finite(counting, lambda _: np.float32([np.inf]))


def test_carried_state_starts_at_zero_and_goes_on(
    counting: Job, counter: onnx.ModelProto, tmp_path: Path
) -> None:
    """Evaluation starts its state at zero and carries the state from batch to batch.

    With w carried and a rate of -1, w is the sum of the batches so far: 4, then 12.
    """
    onnx.save(counter, tmp_path / "stateful.onnx")
    held_out = np.stack([np.full(4, 1, "f4"), np.full(4, 2, "f4")])
    np.savez(tmp_path / "held-out.npz", g=held_out)
    evaluation = Evaluation(
        graph=tmp_path / "stateful.onnx",
        batches=tmp_path / "held-out.npz",
        loss="loss",
        carried=(
            CarriedValue(input="w", output="w_next"),
            CarriedValue(input="v", output="v_next"),
        ),
    )
    job = counting.model_copy(update={"evaluation": evaluation})
    trained = {"w": np.full(4, 7, "f4"), "lr": np.array(-1, "f4")}
    assert held_out_loss(job, trained) == pytest.approx((4 + 12) / 2)
