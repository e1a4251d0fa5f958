"""Readers of a training's batches: in turn, or by a thread that reads ahead.

While a GPU computes, a thread reads ahead, as loaders of frameworks do. If the CPU itself computes,
batches are read in turn: a thread would take the CPU from the step for longer than the gathering
needs. The device's waiting is counted.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Protocol, Self

from epochcost.measure.stepping import Array

# Most batches that are ready: enough to bridge a slow read, few enough to stay in memory.
_READ_AHEAD = 4
_STOPPED_SECONDS = 0.1


class Batches(Protocol):
    """Batches that can be gathered singly, in any order."""

    @property
    def steps(self) -> int:
        """Number of batches."""
        ...

    def gather(self, number: int) -> dict[str, Array]:
        """A batch by graph input."""
        ...


class SequentialReader:
    """Gives batches in order, each gathered on demand."""

    def __init__(self, batches: Batches) -> None:
        self.steps = batches.steps
        self.waited_seconds = 0.0
        self._batches = batches
        self._numbers = iter(range(self.steps))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release nothing."""

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
    """Gives batches in order from a thread that gathers ahead while the context is entered."""

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
        except Exception as error:  # raised in the thread that waits for the batch
            self._put(error)

    def _put(self, batch: dict[str, Array] | Exception) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put(batch, timeout=_STOPPED_SECONDS)
                return
