"""A reader yields all batches in order, times its waiting, and reports failures."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from epochcost.measure.job import JobError
from epochcost.measure.stepping import Array
from epochcost.measure.training import TimedReader


def slow_batches(failing: int | None = None) -> Iterator[dict[str, Array]]:
    """Six batches of one number. Each batch takes a hundredth of a second, and one may fail."""
    for number in range(6):
        if number == failing:
            raise JobError("a batch is damaged")
        time.sleep(0.01)
        yield {"x": np.array([number], np.float32)}


@pytest.mark.parametrize("ahead", [0, 4])
def test_batches_come_in_order_and_waiting_counts(ahead: int) -> None:
    """Batches come in order, and at least the first one is waited for."""
    reader = TimedReader(slow_batches(), ahead)
    assert [int(batch["x"][0]) for batch in reader] == list(range(6))
    assert reader.waited_seconds > 0


@pytest.mark.parametrize("ahead", [0, 4])
def test_a_batch_that_fails_fails_the_step_that_needs_it(ahead: int) -> None:
    """An error in a batch is raised at that batch, even if a thread gathered it."""
    reader = TimedReader(slow_batches(failing=1), ahead)
    next(reader)
    with pytest.raises(JobError, match="a batch is damaged"):
        next(reader)
