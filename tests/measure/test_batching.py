"""Dynamic batching: what goes together, in which order, and when."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from epochcost.measure.serving import BatchQueue


def drained(queue: BatchQueue[int]) -> list[list[int]]:
    """All batches of a closed queue."""
    queue.close()
    return list(iter(queue.take, []))


@given(arrivals=st.lists(st.integers(1, 5), max_size=20), most=st.integers(1, 8))
def test_nothing_is_lost_or_reordered(arrivals: list[int], most: int) -> None:
    """Whatever arrives together or apart leaves once, in order, in batches of the policy."""
    queue: BatchQueue[int] = BatchQueue(most, delay_seconds=0)
    number = 0
    for count in arrivals:
        queue.put(range(number, number + count))
        number += count
    batches = drained(queue)
    assert [item for batch in batches for item in batch] == list(range(number))
    assert all(len(batch) == most for batch in batches[:-1])


def test_without_a_delay_what_waits_goes_at_once() -> None:
    """A batch need not be full."""
    queue: BatchQueue[int] = BatchQueue(4, delay_seconds=0)
    queue.put([1, 2])
    assert queue.take() == [1, 2]


def test_a_full_batch_does_not_wait() -> None:
    """The delay bounds waiting for others, and there is no room for others."""
    queue: BatchQueue[int] = BatchQueue(2, delay_seconds=3600)
    queue.put([1, 2, 3])
    assert queue.take() == [1, 2]


def test_the_delay_lets_later_arrivals_join() -> None:
    """The clock stands still, so only the second arrival can end the waiting."""
    queue: BatchQueue[int] = BatchQueue(2, delay_seconds=1, clock=lambda: 0.0)
    queue.put([1])
    later = threading.Timer(0.05, queue.put, [[2]])
    later.start()
    assert queue.take() == [1, 2]
    later.join()


def test_the_oldest_waits_no_longer_than_the_delay() -> None:
    """By a clock that has passed the delay, one item goes alone."""
    times = iter([0.0])
    queue: BatchQueue[int] = BatchQueue(2, delay_seconds=1, clock=lambda: next(times, 1.5))
    queue.put([1])
    assert queue.take() == [1]
