"""How much the means of fresh processes differ on one host, learnt from all its results together.

Three rounds tell little of the spread that they were drawn from: alike by luck they promise too
much, apart by luck too little. Many results of three rounds tell it well. Variances of the
logarithm of round means are taken as drawn around a common one, as one over a chi-square of so many
degrees of freedom, both of which follow from how the variances of all results are spread (Smyth
2004, Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments, sections 4 and 6.2). A result's own variance is then one voice beside that of the
others, and Student's t has the degrees of both. What the samples within a round leave open is a
bound of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcost.statistics.interval import Interval, relative_half_width
from epochcost.statistics.quantiles import LEVEL, student_quantile

Series = NDArray[np.float64]

# So many results with at least two rounds tell a host's spread; of fewer each stands for itself.
FEWEST_RESULTS = 20
_FEWEST_SAMPLES = 8
# Clocks tell no smaller differences, and a logarithm needs a number.
_LEAST_DEVIATION = 1e-4
# Where variances differ no more than chance has it: as good as known.
_MOST_DEGREES = 100.0
# The series below are exact to 1e-8 from here on.
_FAR = 6.0


@dataclass(frozen=True)
class ProcessSpread:
    """The variance of the logarithm of a process's mean, and how many degrees it is worth."""

    variance: float
    degrees: float

    def interval(self, samples: Series, rounds: Sequence[int]) -> Interval:
        """Bound the mean of samples of rounds; at least as wide as within the rounds is open."""
        ends = np.cumsum(rounds)
        parts = [part for part in np.split(samples, ends[:-1]) if len(part)]
        shares = np.array([len(part) for part in parts]) / len(samples)
        logarithms = np.log([part.mean() for part in parts])
        own = float(logarithms.var(ddof=1)) if len(parts) > 1 else 0.0
        degrees = self.degrees + len(parts) - 1
        variance = (self.degrees * self.variance + (len(parts) - 1) * own) / degrees
        across = student_quantile((1 + LEVEL) / 2, degrees) * math.sqrt(
            variance * float(shares @ shares)
        )
        mean, half = float(samples.mean()), max(across, _within(parts, shares))
        return Interval(mean * math.exp(-half), mean * math.exp(half))


def _within(parts: Sequence[Series], shares: Series) -> float:
    """Half the width that the samples of the rounds leave open; 0 of too few to tell.

    What few samples leave open is in how far the rounds are apart.
    """
    if min(map(len, parts)) < _FEWEST_SAMPLES:
        return 0.0
    widths = shares * [relative_half_width(part) for part in parts]
    return math.sqrt(float(widths @ widths))


def process_spread(variances: Sequence[float], degrees: Sequence[int]) -> ProcessSpread | None:
    """What variances of as many results tell together, each of so many degrees of freedom.

    None of fewer than ``FEWEST_RESULTS``.
    """
    if len(variances) < FEWEST_RESULTS:
        return None
    halves = np.asarray(degrees, np.float64) / 2
    floored = np.maximum(variances, _LEAST_DEVIATION**2)
    known = {half: (_digamma(half), _trigamma(half)) for half in {*halves.tolist()}}
    first, second = np.array([known[half] for half in halves.tolist()]).T
    centred = np.log(floored) - first + np.log(halves)
    left = float(centred.var(ddof=1) - second.mean())
    worth = _MOST_DEGREES if left <= 0 else min(_MOST_DEGREES, 2 * _inverse_trigamma(left))
    common = float(centred.mean()) + _digamma(worth / 2) - math.log(worth / 2)
    return ProcessSpread(math.exp(common), worth)


def _digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function, for x > 0 (A&S 6.3.5, 6.3.18)."""
    shift = 0.0
    while x < _FAR:
        shift -= 1 / x
        x += 1
    y = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y / 252))


def _trigamma(x: float) -> float:
    """The second derivative, for x > 0 (A&S 6.4.6, 6.4.12)."""
    shift = 0.0
    while x < _FAR:
        shift += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    return shift + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y / 42))


def _inverse_trigamma(value: float) -> float:
    """Where the trigamma function has a positive value; it falls, so halving finds it."""
    low, high = 1e-6, 1e6
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _trigamma(middle) > value else (low, middle)
    return math.sqrt(low * high)
