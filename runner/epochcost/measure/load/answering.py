"""Who answers LoadGen: at once on its own thread, or from a queue on ours, by dynamic batching.

LoadGen cannot be stopped from within: after a fault its samples are completed unanswered, and the
fault is raised when its run is over.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

from epochcost.measure.load.batching import BatchQueue
from epochcost.measure.load.loadgen import Issue, Sample, complete

# Answers the examples of these indices.
Answer = Callable[[Sequence[int]], None]
# Called after each batch with the number of samples answered so far.
Answered = Callable[[int], None]


@contextlib.contextmanager
def answering_at_once(answer: Answer, most: int, answered: Answered) -> Iterator[Issue]:
    """Answer a query while it is issued, ``most`` samples at a time."""
    answering = _Answering(answer, answered)

    def issue(samples: Sequence[Sample]) -> None:
        for begin in range(0, len(samples), most):
            answering.batch(samples[begin : begin + most])

    yield issue
    answering.raise_fault()


@contextlib.contextmanager
def answering_from_queue(
    answer: Answer, most: int, delay_seconds: float, answered: Answered
) -> Iterator[Issue]:
    """Queue what is issued and answer it in batches on a thread of its own."""
    answering = _Answering(answer, answered)
    waiting: BatchQueue[Sample] = BatchQueue(most, delay_seconds)

    def serve() -> None:
        while batch := waiting.take():
            answering.batch(batch)

    thread = threading.Thread(target=serve, name="server", daemon=True)
    thread.start()
    try:
        yield waiting.put
    finally:
        waiting.close()
        thread.join()
    answering.raise_fault()


class _Answering:
    """Answers batches and keeps the first fault."""

    def __init__(self, answer: Answer, answered: Answered) -> None:
        self._answer, self._answered = answer, answered
        self._count = 0
        self._fault: Exception | None = None

    def batch(self, samples: Sequence[Sample]) -> None:
        if self._fault is None:
            try:
                self._answer([sample.index for sample in samples])
            except Exception as error:  # must not cross LoadGen's frames
                self._fault = error
        complete(samples)
        self._count += len(samples)
        self._answered(self._count)

    def raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault
