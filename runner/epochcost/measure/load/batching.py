"""Dynamic batching: what waits is taken together, by a policy that the study declares.

Owns the queue between the arrivals and the model; it knows neither.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class BatchQueue(Generic[ItemT]):
    """Gives batches of at most ``most`` items, in order of arrival.

    A batch goes when it is full, or when its oldest item has waited ``delay_seconds``; with no
    delay, whatever waits goes at once.
    """

    def __init__(
        self, most: int, delay_seconds: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._most, self._delay, self._clock = most, delay_seconds, clock
        self._waiting: deque[tuple[float, ItemT]] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, items: Iterable[ItemT]) -> None:
        """Let items arrive now."""
        now = self._clock()
        with self._changed:
            self._waiting.extend((now, item) for item in items)
            self._changed.notify()

    def close(self) -> None:
        """Say that nothing more will arrive; what waits is still given, without delay."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self) -> list[ItemT]:
        """Wait for the next batch; an empty one says that the queue is closed and served."""
        with self._changed:
            while not self._ripe():
                self._changed.wait(self._patience())
            count = min(self._most, len(self._waiting))
            return [self._waiting.popleft()[1] for _ in range(count)]

    def _ripe(self) -> bool:
        if self._closed or len(self._waiting) >= self._most:
            return True
        return bool(self._waiting) and (self._patience() or 0.0) <= 0

    def _patience(self) -> float | None:
        """Seconds until the oldest item has waited long enough; None where none waits."""
        if not self._waiting:
            return None
        return self._waiting[0][0] + self._delay - self._clock()
