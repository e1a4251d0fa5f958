"""Measure a model under LoadGen: warm the model up, then let LoadGen send queries in a scenario.

Each batch size has a session with fixed shapes. A batch between two sizes is padded.
"""

from __future__ import annotations

import contextlib
import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import onnxruntime as ort

from epochcost.measure.agreement import agreement
from epochcost.measure.job import Job, JobError, ServingFiles
from epochcost.measure.loadgen import (
    Answered,
    Answers,
    Issue,
    LoadGenRequest,
    LoadGenTrial,
    Sample,
    run_loadgen,
    run_record,
)
from epochcost.measure.memory import peak_memory_bytes
from epochcost.measure.placement import (
    executed_nodes,
    naming_missing_kernels,
    prove_arithmetic,
    prove_placement,
)
from epochcost.measure.sampling import Report, TrialProgress, to_nanoseconds, warm_up
from epochcost.measure.session import open_session
from epochcost.measure.stepping import (
    Array,
    StepInputs,
    Stepper,
    constant_weights,
    first_values,
    initial_parameters,
    load_arrays,
    tensor_type,
)
from epochcost.plan.work import Load
from epochcost.results.records import Measurement, Placement
from epochcost.results.served import Purpose, ServingRecord
from epochcost.specs.study import MOST_SAMPLES

# Shares of the time budget: half for the run that gives the result, the rest for about ten others.
_SCORED_SHARE = 0.5
_SEARCH_SHARE = 0.05
_LEAST_SEARCH_SECONDS = 0.5
# LoadGen prepares its queries beforehand: a quarter more than the warm-up's speed needs. If they
# were too few, their number is doubled.
_PREPARED = 1.25
_MORE = 2.0
_MOST_RUNS = 4
# Each sample of an offline run is a Python object in memory.
_MOST_PREPARED = 10_000_000
# With a tiny model, LoadGen and our code take most of the time.
_TRIED_OF_BARE = 0.1
# At a tenth of the rate of successive single samples, an arrival rarely waits for another.
_LEAST_UTILISATION = 0.1
# If the longer run does not keep the bound, the next rate is multiplied by this factor.
_LESS = 0.9


def measure_load(
    job: Job, files: ServingFiles, progress: TrialProgress, folder: Path
) -> Measurement:
    """Warm a model up and let LoadGen query it; LoadGen's files are written to ``folder``.

    Raises CapabilityError if LoadGen is missing, JobError if the queries would not fit in memory.
    """
    model = ServedModel(job, files.graphs, folder)
    progress.enter("warm-up")
    warmup = _warm_up_each_size(job, model, progress.report)
    progress.enter("sampling")
    served = _Scenario(job, files.load, model, warmup, progress.report, folder).run()
    peak_bytes = peak_memory_bytes()
    progress.enter("finishing")
    return Measurement(
        started_at=progress.started_at,
        wall_seconds=progress.wall_seconds(),
        warmup_seconds=to_nanoseconds(chain.from_iterable(warmup.values())),
        served=served,
        samples_seconds=(),
        stop_reason="loadgen",
        placement=model.placement,
        steps_taken=model.runs,
        peak_memory_bytes=peak_bytes,
        agreement=agreement(job, model.first_outputs),
    )


def _warm_up_each_size(
    job: Job, model: ServedModel, report: Report
) -> dict[int, tuple[float, ...]]:
    """Warm the model up at each batch size; return each run's time in seconds, by batch size."""
    share = job.sampling.budget_seconds / len(model.sizes)
    times: dict[int, tuple[float, ...]] = {}
    for size in model.sizes:
        answer = partial(model, [index % model.example_count for index in range(size)])
        times[size] = warm_up(answer, time.perf_counter, job.warm_up, share, report)
    return times


class _Scenario(LoadGenTrial):
    def __init__(
        self,
        job: Job,
        load: Load,
        model: ServedModel,
        warmup: Mapping[int, tuple[float, ...]],
        report: Report,
        folder: Path,
    ) -> None:
        super().__init__(job, report, folder)
        self._load, self._model = load, model
        self._service = {
            size: statistics.median(times[-max(1, len(times) // 3) :])
            for size, times in warmup.items()
        }
        self._bound_seconds = load.bound_seconds or 0.0
        self._scored_seconds = _SCORED_SHARE * self._budget_seconds
        self._search_seconds = max(_LEAST_SEARCH_SECONDS, _SEARCH_SHARE * self._budget_seconds)

    def run(self) -> ServingRecord:
        has_result = (
            self._prove_server_rate() if self._load.scenario == "server" else self._run_offline()
        )
        return self._record(self._log, len(self._runs) - 1 if has_result else None)

    def _run_offline(self) -> bool:
        rate = _PREPARED * self._measure_capacity()
        for _ in range(_MOST_RUNS):
            self._run_at_rate(rate, "scored")
            if self._log.values.get("result_min_duration_met"):
                break
            rate *= _MORE
        # The last run gives the result.
        return True

    def _prove_server_rate(self) -> bool:
        alone = 1 / self._service[1]
        if self._service[1] > self._bound_seconds:
            # Rates below that of samples answered one after the other are not tried.
            return self._prove_highest_rate(alone, alone, 1.0, _LESS)
        capacity = self._measure_capacity()
        floor = _LEAST_UTILISATION * min(alone, capacity)
        return self._prove_highest_rate(capacity, floor, 1.0, _LESS)

    def _measure_capacity(self) -> float:
        bare = max(size / seconds for size, seconds in self._service.items())
        # Unlike bare runs of the model, this run includes the time of LoadGen and of our code.
        self._run_at_rate(_TRIED_OF_BARE * bare, "capacity")
        return self._runs[-1].samples_per_second

    def _run_at_rate(self, rate: float, purpose: Purpose) -> None:
        load = Load(scenario="offline") if purpose == "capacity" else self._load
        seconds = self._scored_seconds if purpose == "scored" else self._search_seconds
        if purpose == "scored":
            self._require_affordable(rate)
        # A trace takes about 300 bytes of disk a sample, so that unused traces are not written.
        traced = purpose == "scored" and max(rate * seconds, self._fewest) <= 2 * MOST_SAMPLES
        request = LoadGenRequest(
            scenario=load.scenario,
            minimum_seconds=seconds,
            minimum_queries=self._fewest,
            queries_per_second=rate,
            examples=self._model.example_count,
            bound_seconds=self._bound_seconds,
            percentile=float(load.latency_percentile or 0.99),
            trace=traced,
        )
        with self._answering(load) as issue:
            self._log = run_loadgen(request, issue, self._folder)
        per_second = rate if load.scenario == "server" else None
        self._runs.append(run_record(self._log, purpose, seconds, per_second))

    def _answering(self, load: Load) -> AbstractContextManager[Issue]:
        most = self._model.sizes[-1]
        if load.scenario != "server":
            return answering_at_once(self._model, most, self._answered)
        delay_seconds = float(load.maximum_delay_ms or 0) / 1e3
        return answering_from_queue(self._model, most, delay_seconds, self._answered)

    def _require_affordable(self, rate: float) -> None:
        prepared = rate * self._scored_seconds
        if prepared > _MOST_PREPARED:
            raise JobError(
                f"{self._load.scenario}: expected at most {_MOST_PREPARED:,} queries, which "
                f"LoadGen prepares in memory; {self._scored_seconds:.0f} s of this model "
                f"would take {prepared:,.0f}: measure it with a smaller budget_seconds"
            )


class ServedModel:
    """A model with a session for each batch size, called with the indices of examples.

    ``placement`` and ``first_outputs`` are those of the largest batch size. Carried values start
    anew at each call. Raises JobError for a graph input without a value.
    """

    def __init__(self, job: Job, graphs: Mapping[int, Path], folder: Path) -> None:
        self.examples = load_arrays(job.batches)
        lengths = {len(pool) for pool in self.examples.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise JobError(f"{job.batches}: expected examples of every input, got {lengths}")
        (self.example_count,) = lengths
        self.runs = self._last = 0
        # The sessions of all sizes use these arrays without a copy.
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
            self._sizes[size] = self._make_stepper(job, session)
            self.placement = self._proof(job, session, size)
        names = [info.name for info in session.get_outputs()]
        self.first_outputs = {name: self.output(name).copy() for name in names}

    @property
    def sizes(self) -> tuple[int, ...]:
        """The batch sizes for which there is a session, ascending."""
        return tuple(self._sizes)

    def __call__(self, indices: Sequence[int]) -> None:
        """Run the model on the examples ``indices``, at most as many as the largest batch size."""
        self._last = next(size for size in self._sizes if size >= len(indices))
        self._indices = indices
        self._sizes[self._last]()
        self.runs += 1

    def output(self, name: str) -> Array:
        """An output of the last call, with the rows that pad the batch; no copy on the CPU."""
        return self._sizes[self._last].output(name)

    def _make_stepper(self, job: Job, session: ort.InferenceSession) -> Stepper:
        types = {info.name: tensor_type(info) for info in session.get_inputs()}
        staged = {name: np.zeros(*types[name]) for name in self.examples}
        constant = {name: kind for name, kind in types.items() if name not in staged}
        state = first_values(job.graph, constant, {}, job.carried)
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
        return prove_placement(nodes, job.provider)


ItemT = TypeVar("ItemT")


class BatchQueue(Generic[ItemT]):
    """A queue that groups items into batches of at most ``most``, in order of arrival.

    A batch is complete when it is full, or when its oldest item has waited ``delay_seconds``.
    """

    def __init__(
        self, most: int, delay_seconds: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._most, self._delay, self._clock = most, delay_seconds, clock
        self._waiting: queue.SimpleQueue[tuple[float, ItemT] | None] = queue.SimpleQueue()
        self._closed = False

    def put(self, items: Iterable[ItemT]) -> None:
        """Add items to the queue, with the current time as their arrival."""
        now = self._clock()
        for item in items:
            self._waiting.put((now, item))

    def close(self) -> None:
        """Accept no further items; ``take`` still returns waiting items, without delay."""
        self._waiting.put(None)

    def take(self) -> list[ItemT]:
        """Wait for the next batch and return it; empty if the queue is closed and has no items."""
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


# A function that runs the model on the examples with these numbers.
Answer = Callable[[Sequence[int]], None]


@contextlib.contextmanager
def answering_at_once(answer: Answer, most: int, answered: Answered) -> Iterator[Issue]:
    """Yield a function that answers each query immediately, in batches of up to ``most`` samples.

    The first error of ``answer`` is raised at the end of the context.
    """
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
    """Yield a function that puts samples into a `BatchQueue`, from which a thread answers them.

    The context ends when all are answered, and raises the first error of ``answer``.
    """
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
