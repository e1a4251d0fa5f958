"""Serve a model: answer any number of examples at once, with a session for each batch size.

Sessions have fixed shapes, as in trials with full batches. Fixed shapes let ONNX Runtime plan its
memory, and are possible for graphs without a symbolic batch. A batch between two sizes is padded to
the larger size. This module opens the sessions, and has the queue that collects waiting samples
into batches. It answers LoadGen either on LoadGen's thread or, from the queue, on another thread.
``scenario`` makes LoadGen send queries.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import onnxruntime as ort

from epochcost.measure.job import Job, JobError
from epochcost.measure.loadgen import Answered, Answers, Issue, Sample
from epochcost.measure.placement import (
    executed_nodes,
    naming_missing_kernels,
    prove_arithmetic,
    prove_placement,
)
from epochcost.measure.session import open_session
from epochcost.measure.stepping import (
    Array,
    StepInputs,
    Stepper,
    constant_weights,
    initial_parameters,
    load_arrays,
    tensor_type,
)
from epochcost.results.records import EXECUTION_PROVIDERS, Placement


class ServedModel:
    """A model that is called with indices of examples; it copies the outputs to the host.

    ``placement`` is the proof of where the nodes of the largest batch size ran; ``first_outputs``
    are the outputs of that batch size for the first examples. Carried state is reset at each call,
    because requests come from different users. Raises JobError for a graph input without a value.
    """

    def __init__(self, job: Job, graphs: Mapping[int, Path], folder: Path) -> None:
        self.examples = load_arrays(job.batches)
        lengths = {len(pool) for pool in self.examples.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise JobError(f"{job.batches}: expected examples of every input, got {lengths}")
        (self.example_count,) = lengths
        self.runs = self._last = 0
        # Sessions of all sizes borrow these arrays.
        self._weights = constant_weights(job, initial_parameters(job))
        self._indices: Sequence[int] = ()
        self._sizes: dict[int, Stepper] = {}
        for size in sorted(graphs):
            with naming_missing_kernels(job.precision, job.provider):
                session = open_session(
                    graphs[size],
                    job.provider,
                    job.session,
                    folder / "profile",
                    weights=self._weights,
                )
            self._sizes[size] = self._stepper(job, session)
            self.placement = self._proof(job, session, size)
        names = [info.name for info in session.get_outputs()]
        self.first_outputs = {name: self.output(name).copy() for name in names}

    @property
    def sizes(self) -> tuple[int, ...]:
        """The batch sizes that have a session, ascending."""
        return tuple(self._sizes)

    def __call__(self, indices: Sequence[int]) -> None:
        """Answer these examples, at most as many as the largest batch size."""
        self._last = next(size for size in self._sizes if size >= len(indices))
        self._indices = indices
        self._sizes[self._last]()
        self.runs += 1

    def output(self, name: str) -> Array:
        """Copy an output of the last call to the host, padding included."""
        return self._sizes[self._last].output(name)

    def _stepper(self, job: Job, session: ort.InferenceSession) -> Stepper:
        """Make a stepper with a fixed batch size.

        It reads carried state as a constant, so that calls are independent.
        """
        kinds = {info.name: tensor_type(info) for info in session.get_inputs()}
        fills = {carried.input: carried.fill for carried in job.carried}
        missing = [name for name in kinds if name not in self.examples and name not in fills]
        if missing:
            raise JobError(
                f"{job.graph}: input {missing[0]!r} has no value: expected it among the examples, "
                "the parameters or the carried values"
            )
        staged = {name: np.zeros(*kinds[name]) for name in self.examples}
        state = {
            name: np.full(shape, fills[name], dtype)
            for name, (shape, dtype) in kinds.items()
            if name not in staged
        }
        inputs = StepInputs({name: values[np.newaxis] for name, values in staged.items()}, state)
        step = Stepper(session, job.provider, job.mode, inputs, settings=job.session)
        step.feed_from(self._batches(staged))
        return step

    def _batches(self, staged: dict[str, Array]) -> Iterator[dict[str, Array]]:
        while True:
            count = len(self._indices)
            for name, values in staged.items():
                examples = self.examples[name]
                np.take(examples, self._indices, axis=0, out=values[:count], mode="clip")
            yield staged

    def _proof(self, job: Job, session: ort.InferenceSession, size: int) -> Placement:
        self([index % self.example_count for index in range(size)])
        nodes = executed_nodes(session)
        prove_arithmetic(nodes, job.precision, job.provider)
        return prove_placement(nodes, EXECUTION_PROVIDERS[job.provider])


ItemT = TypeVar("ItemT")


class BatchQueue(Generic[ItemT]):
    """A queue that groups items into batches of at most ``most``, in order of arrival.

    A batch is complete when it is full, or when its oldest item has waited ``delay_seconds``;
    without delay, all waiting items form a batch.
    """

    def __init__(
        self, most: int, delay_seconds: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._most, self._delay, self._clock = most, delay_seconds, clock
        self._waiting: queue.SimpleQueue[tuple[float, ItemT] | None] = queue.SimpleQueue()
        self._closed = False

    def put(self, items: Iterable[ItemT]) -> None:
        """Add items to the queue; they arrive now."""
        now = self._clock()
        for item in items:
            self._waiting.put((now, item))

    def close(self) -> None:
        """Accept no further items; waiting items are still taken, without delay."""
        self._waiting.put(None)

    def take(self) -> list[ItemT]:
        """Wait for the next batch; it is empty if the queue is closed and has no more items."""
        batch: list[tuple[float, ItemT]] = []
        while len(batch) < self._most and not self._closed:
            deadline = batch[0][0] + self._delay if batch else None
            patience = None if deadline is None else max(0.0, deadline - self._clock())
            try:
                arrival = self._waiting.get(timeout=patience)
            except queue.Empty:
                break
            if arrival is None:
                self._closed = True
            else:
                batch.append(arrival)
        return [item for _, item in batch]


# Answers the examples of these indices.
Answer = Callable[[Sequence[int]], None]


@contextlib.contextmanager
def answering_at_once(answer: Answer, most: int, answered: Answered) -> Iterator[Issue]:
    """Make a function that answers a query as LoadGen issues it, ``most`` samples at a time."""
    answers = Answers(answered)

    def issue(samples: Sequence[Sample]) -> None:
        for begin in range(0, len(samples), most):
            _answer_batch(answers, answer, samples[begin : begin + most])

    yield issue
    answers.raise_fault()


@contextlib.contextmanager
def answering_from_queue(
    answer: Answer, most: int, delay_seconds: float, answered: Answered
) -> Iterator[Issue]:
    """Make a function that puts issued samples into a queue, for another thread to answer."""
    answers = Answers(answered)
    waiting: BatchQueue[Sample] = BatchQueue(most, delay_seconds)

    def serve() -> None:
        while batch := waiting.take():
            _answer_batch(answers, answer, batch)

    thread = threading.Thread(target=serve, name="server", daemon=True)
    thread.start()
    try:
        yield waiting.put
    finally:
        waiting.close()
        thread.join()
    answers.raise_fault()


def _answer_batch(answers: Answers, answer: Answer, samples: Sequence[Sample]) -> None:
    answers.attempt(lambda: answer([sample.index for sample in samples]))
    answers.complete(samples)
