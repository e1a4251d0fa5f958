"""Whole epochs as training runs them: read, shuffled, batched, copied, trained.

A batch is gathered from files that are mapped into memory. Beside a device of its own a thread
reads ahead, as loaders of frameworks do. Where the CPU itself computes, batches are read in turn: a
thread takes the CPU from the very step that it hides behind, for longer than the gathering needs.
What the device waits for is counted. The last incomplete batch is dropped, as the price of an epoch
assumes.

An epoch pauses after each tenth for some sampled steps, which read as it does. What they predict
is then of the same minutes: on a shared machine a minute differs from the next by more than an
epoch's steps differ from sampled ones.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from epochcost.measure.job import EpochFiles, JobError
from epochcost.measure.sampling import Clock, PacedReport, Report
from epochcost.measure.stepping import Array, Stepper, TensorType
from epochcost.results.records import Epoch, WholeEpochs

# Batches that are ready at most: enough to bridge a slow read, few enough to stay in memory.
_READ_AHEAD = 4
_PARTS = 10
_STOPPED_SECONDS = 0.1


def run_epochs(
    files: EpochFiles, step: Stepper, clock: Clock, report: Report, *, ahead: bool
) -> WholeEpochs:
    """Run as many epochs as asked, reading ``ahead`` or in turn.

    Raises JobError where the files do not fit the graph.
    """
    stored = {name: _map_file(path) for name, path in files.arrays.items()}
    types = {name: _require_type(step.input_type(name), name, stored[name]) for name in stored}
    size = min(len(array) for array in stored.values())
    sampled: list[float] = []
    epochs: list[Epoch] = []
    for number in range(files.count):
        own, others = (
            _EpochBatches(stored, types, _order(files, size, number, draw)) for draw in (0, 1)
        )
        again = itertools.cycle(range(files.steps))
        run = _EpochRun(step, clock, report, None if ahead else SequentialReader(others, again))
        epochs.append(
            run.epoch(PrefetchingReader(own) if ahead else SequentialReader(own), files.between)
        )
        sampled += run.sampled_seconds
    return WholeEpochs(
        steps=files.steps,
        examples_on_disk=size,
        epochs=tuple(epochs),
        sampled_steps=len(sampled) or None,
        step_seconds=fmean(sampled) if sampled else None,
    )


def _map_file(path: Path) -> Array:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise JobError(f"{path}: expected an array; {error}") from error


def _require_type(kind: TensorType, name: str, stored: Array) -> TensorType:
    shape, dtype = kind
    if stored.dtype != dtype:
        raise JobError(f"epochs: {name!r}: expected {dtype} {list(shape)}, got {stored.dtype}")
    return kind


def _order(files: EpochFiles, size: int, number: int, draw: int) -> NDArray[np.int64]:
    """Which example stands where in the batches [steps, batch] of an epoch; each draw differs."""
    rng = np.random.default_rng([files.seed, number, draw])
    shuffled = rng.permutation(files.examples)[: files.steps * files.batch_size]
    return (shuffled % size).reshape(files.steps, files.batch_size)


class _EpochRun:
    """One epoch in parts, with sampled steps in between.

    What is sampled gathers other batches in turn where the epoch does, and takes the pool's where
    a thread gathers them for the epoch.
    """

    def __init__(
        self, step: Stepper, clock: Clock, report: Report, others: SequentialReader | None
    ) -> None:
        self._step, self._clock, self._others = step, clock, others
        self._paced, self._taken = PacedReport(report, clock), 0
        self.sampled_seconds: list[float] = []

    def epoch(self, reader: SequentialReader, between: int) -> Epoch:
        """Take all steps of the reader, timed without the pauses."""
        parts, begun = [], self._clock()
        with reader:
            for steps, samples in zip(_cut(reader.steps), _cut(between), strict=True):
                self._step.feed_from(reader)
                for _ in range(steps):
                    self._step()
                    self._taken += 1
                    self._paced.at(self._clock(), self._taken, None)
                parts.append(self._clock() - begun)
                self._sample(samples)
                begun = self._clock()
        return Epoch(
            seconds=sum(parts),
            waiting_seconds=reader.waited_seconds,
            parts_seconds=tuple(parts) if reader.steps >= _PARTS else (),
        )

    def _sample(self, steps: int) -> None:
        if self._others is None:
            self._step.feed_from_pool()
        else:
            self._step.feed_from(self._others)
        for _ in range(steps):
            begun = self._clock()
            self._step()
            self.sampled_seconds.append(self._clock() - begun)


def _cut(steps: int) -> list[int]:
    """Steps in parts, each as long as the others to one step."""
    bounds = [steps * part // _PARTS for part in range(_PARTS + 1)]
    return [after - before for before, after in itertools.pairwise(bounds)]


class Batches(Protocol):
    """Batches that can be gathered one by one, in any order."""

    @property
    def steps(self) -> int:
        """How many there are."""
        ...

    def gather(self, number: int) -> dict[str, Array]:
        """One batch by graph input."""
        ...


@dataclass(frozen=True)
class _EpochBatches:
    """The batches of one epoch: rows ``order`` [steps, batch] of stored arrays, as the graph's."""

    stored: Mapping[str, Array]
    types: Mapping[str, TensorType]
    order: NDArray[np.int64]

    @property
    def steps(self) -> int:
        """How many batches there are."""
        return len(self.order)

    def gather(self, number: int) -> dict[str, Array]:
        """One batch by graph input; raises JobError where the rows are not what it takes."""
        rows = self.order[number]
        try:
            return {name: self._rows(name, rows) for name in self.stored}
        except (OSError, ValueError) as error:
            raise JobError(f"reading an epoch's batch failed: {error}") from error

    def _rows(self, name: str, rows: NDArray[np.int64]) -> Array:
        # A target may have its first axes as one.
        return np.take(self.stored[name], rows, axis=0).reshape(self.types[name][0])


class SequentialReader:
    """Hands over batches of one epoch, all in order or those of ``numbers``, each when asked."""

    def __init__(self, batches: Batches, numbers: Iterable[int] | None = None) -> None:
        self.steps = batches.steps
        self.waited_seconds = 0.0
        self._batches = batches
        self._numbers = iter(range(self.steps) if numbers is None else numbers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left open."""

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        return self

    def __next__(self) -> Mapping[str, Array]:
        """The next batch by graph input; waiting for it is counted."""
        number = next(self._numbers)
        begun = time.perf_counter()
        batch = self._batch(number)
        self.waited_seconds += time.perf_counter() - begun
        return batch

    def _batch(self, number: int) -> Mapping[str, Array]:
        return self._batches.gather(number)


class PrefetchingReader(SequentialReader):
    """The same from a thread that gathers the next batches meanwhile, while it is entered."""

    def __init__(self, batches: Batches) -> None:
        super().__init__(batches)
        self._ready: queue.Queue[dict[str, Array] | Exception] = queue.Queue(_READ_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _batch(self, _number: int) -> Mapping[str, Array]:
        batch = self._ready.get()
        if isinstance(batch, Exception):
            raise batch
        return batch

    def _read(self) -> None:
        try:
            for number in range(self.steps):
                self._put(self._batches.gather(number))
        except Exception as error:  # told in the thread that waits for the batch
            self._put(error)

    def _put(self, batch: dict[str, Array] | Exception) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put(batch, timeout=_STOPPED_SECONDS)
                return
