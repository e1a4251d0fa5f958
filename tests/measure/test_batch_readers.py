"""Batches in turn and ahead: all of them in order, waiting counted, failures told."""

from __future__ import annotations

import time

import numpy as np
import pytest

from epochcost.measure.job import JobError
from epochcost.measure.stepping import Array
from epochcost.measure.training import PrefetchingReader, SequentialReader


class _Slow:
    """Six batches of one number; each takes a hundredth of a second, and one may fail."""

    steps = 6

    def __init__(self, failing: int | None = None) -> None:
        self._failing = failing

    def gather(self, number: int) -> dict[str, Array]:
        """The number itself."""
        if number == self._failing:
            raise JobError("a batch is damaged")
        time.sleep(0.01)
        return {"x": np.array([number], np.float32)}


@pytest.mark.parametrize("reader", [SequentialReader, PrefetchingReader])
def test_batches_come_in_order_and_waiting_counts(reader: type[SequentialReader]) -> None:
    """The first batch is always waited for."""
    with reader(_Slow()) as batches:
        numbers = [int(next(batches)["x"][0]) for _ in range(batches.steps)]
        assert numbers == list(range(6))
        assert batches.waited_seconds > 0


@pytest.mark.parametrize("reader", [SequentialReader, PrefetchingReader])
def test_a_batch_that_fails_fails_the_step_that_needs_it(reader: type[SequentialReader]) -> None:
    """Also where a thread gathered it."""
    with reader(_Slow(failing=1)) as batches:
        next(batches)
        with pytest.raises(JobError, match="a batch is damaged"):
            next(batches)
