"""Whole epochs as training runs them: read, shuffled, batched, copied, trained.

A thread reads ahead, as every framework's loader does: it gathers the shuffled examples of the next
batches from files that are mapped into memory, while the device works. What the device waits for
beyond that is counted. The last incomplete batch is dropped, as the price of an epoch assumes.

An epoch pauses after each tenth for some steps as a trial takes them. What they foretell is then of
the same minutes: on a shared machine a minute differs from the next by more than an epoch's steps
differ from sampled ones.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from epochcost.measure.failures import JobError
from epochcost.measure.job import EpochFiles
from epochcost.measure.sampling import Clock, Report
from epochcost.measure.stepping import Array, Stepper, TensorType
from epochcost.results.epochs import Epoch, WholeEpochs

# Batches that are ready at most: enough to bridge a slow read, few enough to stay in memory.
_READ_AHEAD = 4
_PARTS = 10
_REPORT_SECONDS = 1.0
_STOPPED_SECONDS = 0.1


def run_epochs(files: EpochFiles, step: Stepper, clock: Clock, report: Report) -> WholeEpochs:
    """Run as many epochs as asked; raises JobError where the files do not fit the graph."""
    stored = {name: _mapped(path) for name, path in files.arrays.items()}
    types = {name: _fitting(step.input_type(name), name, stored[name]) for name in stored}
    size = min(len(array) for array in stored.values())
    sampled: list[float] = []
    epochs: list[Epoch] = []
    for number in range(files.count):
        reader = _Reader(stored, types, _order(files, size, number))
        run = _Run(step, clock, report)
        epochs.append(run.epoch(reader, files.between))
        sampled += run.sampled_seconds
    return WholeEpochs(
        steps=files.steps,
        examples_on_disk=size,
        epochs=tuple(epochs),
        sampled_steps=len(sampled) or None,
        step_seconds=fmean(sampled) if sampled else None,
    )


def _mapped(path: Path) -> Array:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise JobError(f"{path}: demanded an array; {error}") from error


def _fitting(kind: TensorType, name: str, stored: Array) -> TensorType:
    shape, dtype = kind
    if stored.dtype != dtype:
        raise JobError(f"epochs: {name!r}: demanded {dtype} {list(shape)}; got {stored.dtype}")
    return kind


def _order(files: EpochFiles, size: int, number: int) -> NDArray[np.int64]:
    """Which example stands where in the batches [steps, batch] of an epoch."""
    rng = np.random.default_rng([files.seed, number])
    shuffled = rng.permutation(files.examples)[: files.steps * files.batch_size]
    return (shuffled % size).reshape(files.steps, files.batch_size)


class _Run:
    """One epoch in parts, with steps of the pool in between."""

    def __init__(self, step: Stepper, clock: Clock, report: Report) -> None:
        self._step, self._clock, self._report = step, clock, report
        self._taken, self._told = 0, clock()
        self.sampled_seconds: list[float] = []

    def epoch(self, reader: _Reader, between: int) -> Epoch:
        """All steps of the reader, timed without the pauses."""
        batches, parts, begun = iter(reader), [], self._clock()
        with reader:
            for steps, samples in zip(_cut(reader.steps), _cut(between), strict=True):
                self._step.feed_from(batches)
                for _ in range(steps):
                    self._step()
                    self._tell()
                parts.append(self._clock() - begun)
                self._sample(samples)
                begun = self._clock()
        return Epoch(
            seconds=sum(parts),
            waiting_seconds=reader.waited_seconds,
            parts_seconds=tuple(parts) if reader.steps >= _PARTS else (),
        )

    def _sample(self, steps: int) -> None:
        self._step.feed_from_pool()
        for _ in range(steps):
            begun = self._clock()
            self._step()
            self.sampled_seconds.append(self._clock() - begun)

    def _tell(self) -> None:
        self._taken += 1
        if (now := self._clock()) - self._told >= _REPORT_SECONDS:
            self._told = now
            self._report(self._taken, None)


def _cut(steps: int) -> list[int]:
    """Steps in parts, each as long as the others to one step."""
    bounds = [steps * part // _PARTS for part in range(_PARTS + 1)]
    return [after - before for before, after in pairwise(bounds)]


class _Reader:
    """Gathers the batches of one epoch in order, from a thread, while it is entered."""

    def __init__(
        self,
        stored: Mapping[str, Array],
        types: Mapping[str, TensorType],
        order: NDArray[np.int64],
    ) -> None:
        self.steps = len(order)
        self.waited_seconds = 0.0
        self._stored, self._types, self._order = stored, types, order
        self._ready: queue.Queue[dict[str, Array] | Exception] = queue.Queue(_READ_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        """The batches by graph input; waiting for one is counted."""
        for _ in range(self.steps):
            begun = time.perf_counter()
            batch = self._ready.get()
            self.waited_seconds += time.perf_counter() - begun
            if isinstance(batch, Exception):
                raise JobError(f"reading an epoch's batch failed: {batch}") from batch
            yield batch

    def _read(self) -> None:
        try:
            for rows in self._order:
                self._put({name: self._gathered(name, rows) for name in self._stored})
        except Exception as error:  # told in the thread that waits for the batch
            self._put(error)

    def _gathered(self, name: str, rows: NDArray[np.int64]) -> Array:
        """Rows of one array as the graph takes them: a target may have its first axes as one."""
        shape, _ = self._types[name]
        return np.take(self._stored[name], rows, axis=0).reshape(shape)

    def _put(self, batch: dict[str, Array] | Exception) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put(batch, timeout=_STOPPED_SECONDS)
                return
