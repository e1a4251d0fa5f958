"""Synthetic step times with a known mean, on which coverage is measured.

The random processes were fixed before the first measurement. Disturbances happen in time, not in
steps, so their parameters are in seconds: steps of 0.3 ms and of 0.3 s meet the same machine.

- *jitter* of each step, lognormal (times are skewed to the right), 0.5 to 30 %: from an idle
  machine to a virtual one with neighbours (33 % was measured for a perceptron on two busy cores);
- *correlation*: load of neighbours and clock governors, a first-order autoregressive process of
  1 to 10 % with a memory of 5 to 500 ms;
- *drift*: variation of clock and temperature, the same process with 0.3 to 2 % and 0.5 to 5 s;
  slower drift exceeds a trial's budget, so only rounds can detect it;
- *outliers*: interruptions at random times (Poisson), 0.5 to 50 a second, of 0.05 to 5 ms on
  average, exponential: from 1 in 7000 steps, 17 times as long, to several in every step.

Ranges are drawn log-uniformly. Every process is stationary, begins in its stationary state and has
the mean ``Trace.mean``. Each family has jitter, and the last family has all four disturbances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]
FAMILIES = ("jitter", "correlation", "drift", "outliers", "everything")
_SEED = 20161121
# Steps drawn at once, and steps computed by one matrix product.
_CHUNK, _BLOCK = 2048, 64
_STEP_SECONDS = (3e-4, 0.3)
_JITTER = (0.005, 0.3)
_CORRELATION, _CORRELATION_SECONDS = (0.01, 0.1), (0.005, 0.5)
_DRIFT, _DRIFT_SECONDS = (0.003, 0.02), (0.5, 5.0)
_OUTLIERS_PER_SECOND, _OUTLIER_SECONDS = (0.5, 50.0), (5e-5, 5e-3)


@dataclass(frozen=True)
class Trace:
    """The parameters of a random process of step times, in which 0 means no disturbance.

    ``quiet_seconds`` is the time of a step without outliers.
    """

    seed: tuple[int, int]
    quiet_seconds: float
    jitter: float
    correlation: float = 0.0
    correlation_seconds: float = 1.0
    drift: float = 0.0
    drift_seconds: float = 1.0
    outliers_per_second: float = 0.0
    outlier_seconds: float = 0.0

    @classmethod
    def draw(cls, family: str, number: int) -> Trace:
        """Draw the process ``number`` of a family, always with the same parameters."""
        rng = np.random.default_rng([_SEED, number])

        def between(bounds: tuple[float, float]) -> float:
            return math.exp(rng.uniform(math.log(bounds[0]), math.log(bounds[1])))

        parts: dict[str, float] = {}
        if family in ("correlation", "everything"):
            parts["correlation"] = between(_CORRELATION)
            parts["correlation_seconds"] = between(_CORRELATION_SECONDS)
        if family in ("drift", "everything"):
            parts |= {"drift": between(_DRIFT), "drift_seconds": between(_DRIFT_SECONDS)}
        if family in ("outliers", "everything"):
            parts["outliers_per_second"] = between(_OUTLIERS_PER_SECOND)
            parts["outlier_seconds"] = between(_OUTLIER_SECONDS)
        return cls((_SEED + 1, number), between(_STEP_SECONDS), between(_JITTER), **parts)

    @property
    def mean(self) -> float:
        """The expected time of a step, since the lognormal factors have mean 1."""
        return self.quiet_seconds * (1 + self.outliers_per_second * self.outlier_seconds)

    def steps(self) -> Iterator[float]:
        """Yield step times without end."""
        rng = np.random.default_rng(self.seed)
        slow = _Wander(self.correlation, self.quiet_seconds / self.correlation_seconds, rng)
        slower = _Wander(self.drift, self.quiet_seconds / self.drift_seconds, rng)
        while True:
            factor = _lognormal(rng.standard_normal(_CHUNK), self.jitter)
            quiet = self.quiet_seconds * factor * slow.draw() * slower.draw()
            yield from (quiet + self._interruptions(rng)).tolist()

    def _interruptions(self, rng: np.random.Generator) -> Series:
        """For each step, the sum of the exponential times of the step's interruptions."""
        if not self.outliers_per_second:
            return np.zeros(_CHUNK)
        hits = rng.poisson(self.outliers_per_second * self.quiet_seconds, _CHUNK)
        drawn = rng.gamma(np.maximum(hits, 1), self.outlier_seconds)
        return np.where(hits > 0, drawn, 0.0)


class _Wander:
    """A lognormal factor whose logarithm is a first-order autoregressive process."""

    def __init__(self, spread: float, steps_of_memory: float, rng: np.random.Generator) -> None:
        self._spread, self._rng = spread, rng
        memory = math.exp(-steps_of_memory)
        powers = np.arange(_BLOCK)[:, None] - np.arange(_BLOCK)[None, :]
        kernel = np.where(powers >= 0, memory ** np.maximum(powers, 0), 0.0)
        self._kernel = kernel * math.sqrt(1 - memory**2)
        self._decay = memory ** np.arange(1, _BLOCK + 1)
        self._state = rng.standard_normal()

    def draw(self) -> Series:
        if not self._spread:
            return np.ones(_CHUNK)
        blocks = self._rng.standard_normal((_CHUNK // _BLOCK, _BLOCK)) @ self._kernel.T
        for number in range(len(blocks)):
            blocks[number] += self._state * self._decay
            self._state = blocks[number, -1]
        return _lognormal(blocks.ravel(), self._spread)


def _lognormal(normal: Series, spread: float) -> Series:
    return np.asarray(np.exp(spread * normal - spread**2 / 2))
