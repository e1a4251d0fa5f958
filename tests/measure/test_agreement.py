"""Outputs against fp32: the differences that are stored, and numbers that are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from epochcost.measure.agreement import agreement
from epochcost.measure.job import Job, JobError, Reference

X = np.array([[[1, 2, 3, 4], [-4, 3, -2, 1]]], "f4")
W = np.array([[3, 0, 1], [0, 3, 1], [1, 0, 1], [0, 1, 1]], "f4")
EXACT = np.maximum(X[0] @ W, 0)


@pytest.fixture(name="compared")
def compared_fixture(
    job_of: Callable[..., Job], product: onnx.ModelProto
) -> Callable[[NDArray[np.float32]], object]:
    """What is stored where the first step of y = relu(x w) gave other outputs."""
    job = job_of(product, {"x": X}, {"w": W}, mode="inference", outputs=("y",), precision="fp16")
    reference = Reference(graph=job.graph, batches=job.batches, examples=2)
    return lambda got: agreement(job.model_copy(update={"reference": reference}), {"y": got})


def test_equal_outputs_differ_by_nothing(
    compared: Callable[[NDArray[np.float32]], object],
) -> None:
    """The reference is computed from the same parameters and the first batch."""
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
        "quantization": None,
    }


def test_differences_are_by_element_by_norm_and_by_row(
    compared: Callable[[NDArray[np.float32]], object],
) -> None:
    """One element of the first row grows past the largest: half of the rows changed."""
    got = EXACT.copy()
    got[0, 0] += 8
    (output,) = compared(got).outputs  # type: ignore[attr-defined]
    assert output.maximum_absolute == 8
    assert output.relative_to_norm == pytest.approx(8 / np.linalg.norm(EXACT))
    assert output.largest_changed == 0.5


def test_numbers_beyond_the_range_are_refused(
    compared: Callable[[NDArray[np.float32]], object],
) -> None:
    """A model whose outputs overflow does not work in that precision, and is not timed in it."""
    got = EXACT.copy()
    got[0, 1] = np.inf
    with pytest.raises(JobError, match="'y': demanded finite numbers, as in fp32; got some beyond"):
        compared(got)


def test_a_job_without_reference_is_not_compared(
    job_of: Callable[..., Job], product: onnx.ModelProto
) -> None:
    """The plain trial is fp32 itself."""
    job = job_of(product, {"x": X}, {"w": W}, mode="inference", outputs=("y",))
    assert agreement(job, {}) is None
