"""The mean of a series without what was measured beside it: a control, and which state it was in.

A control variate (Lavenberg & Welch 1981, A Perspective on the Use of Control Variables to Increase
the Efficiency of Monte Carlo Simulations): beside the samples something was read whose value on
the machine undisturbed is known, here 0: the share of the time for which others kept the trial's
threads from a CPU. The logarithm of a step grows in proportion to it: beside a program that took
a third of the time from two threads, and one that took as much as it could get, the slopes of one
model were the same (docs/method/measurement.md). The slope is that of a straight line through
stretches of the series and, where they say little, the usual one; how unsure it is lengthens the
interval.

Direct standardisation, or post-stratification (Cochran 1977, Sampling Techniques, section 5A.9):
where a series was now in one of two states and now in the other, and a third says how often each is
usual, each state's mean counts by its usual share. What is left between rounds is what the states
do not explain, and the interval is of that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcost.statistics.interval import Bounded, Interval, mean_interval
from epochcost.statistics.quantiles import LEVEL, student_quantile

Series = NDArray[np.float64]

# Beside programs of its own priority no step was seen to lose more.
_STEEPEST = 1.5
# A line through fewer points says nothing of its error.
_FEWEST_STRETCHES = 4
# One of the differences between rounds is that of the states; of the others one at least is left.
# A state of which half a round was seen has a mean.
_FEWEST_ROUNDS, _LEAST_ROUNDS_OF_STATE = 3, 0.5


@dataclass(frozen=True)
class Slope:
    """By how much the logarithm of a series grows with its control, and its standard error."""

    mean: float
    error: float

    def joined(self, other: Slope) -> Slope:
        """Both, each by its precision."""
        one, two = self.error**-2, other.error**-2
        return Slope((self.mean * one + other.mean * two) / (one + two), (one + two) ** -0.5)


@dataclass(frozen=True)
class Standard:
    """By what samples are multiplied, one each or all, to be of the usual mean of both states.

    Half the width of the interval of their mean is ``lengthening`` times as long, and
    ``relative_error`` is a standard error that they know nothing of.
    """

    scale: Series | float = 1.0
    lengthening: float = 1.0
    relative_error: float = 0.0


def undisturbed_mean(
    samples: Series,
    control: Series,
    stretches: Sequence[slice],
    rounds: Sequence[int],
    usual: Slope,
    standard: Standard,
) -> Bounded:
    """The mean of positive samples where the control is 0, between the ends of its interval.

    ``control`` is a share of the time, from 0 to 1, one for each; ``stretches`` are neighbouring
    samples whose control was read together. ``rounds`` as ``mean_interval`` takes them.
    """
    corrected, slope = without_control(samples * standard.scale, control, stretches, usual)
    plain = mean_interval(corrected, rounds=rounds)
    mean = float(corrected.mean())
    errors = slope.error * float((corrected * control).mean()), standard.relative_error * mean
    low, high = (mean + standard.lengthening * (end - mean) for end in (plain.low, plain.high))
    interval = Interval(low, high).widened(mean, math.hypot(*errors))
    return Bounded(interval.low, mean, interval.high)


def standardised(
    samples: Series, second: NDArray[np.bool_], usual_share: float, rounds: Sequence[int]
) -> Standard | None:
    """For samples of which some are in the ``second`` of two states, usual for ``usual_share``.

    ``rounds`` are the counts of consecutive samples of a process each. None where one of the states
    was not seen for long, or there are too few rounds.
    """
    bounds = np.cumsum([0, *rounds])
    parts = [float(second[begin:end].mean()) for begin, end in itertools.pairwise(bounds)]
    seen = len(rounds) - sum(parts), sum(parts)
    if len(rounds) < _FEWEST_ROUNDS or min(seen) < _LEAST_ROUNDS_OF_STATE:
        return None
    shares = 1 - usual_share, usual_share
    means = float(samples[~second].mean()), float(samples[second].mean())
    usual = sum(share * mean for share, mean in zip(shares, means, strict=True))
    # As many rounds as were seen of each state bear its share.
    unequal = len(rounds) * sum(part**2 / count for part, count in zip(shares, seen, strict=True))
    scale = np.where(second, usual / means[1], usual / means[0])
    return Standard(scale, math.sqrt(unequal) * _of_one_freedom_less(len(rounds) - 1))


def _of_one_freedom_less(degrees: int) -> float:
    """How many times as wide an interval is when one of its degrees of freedom is spent."""
    wider, narrower = (student_quantile((1 + LEVEL) / 2, one) for one in (degrees - 1, degrees))
    return math.sqrt(degrees / (degrees - 1)) * wider / narrower


def without_control(
    samples: Series, control: Series, stretches: Sequence[slice], usual: Slope
) -> tuple[Series, Slope]:
    """The samples as they would be where the control is 0, by the slope that is returned."""
    found = _slope(samples, control, stretches)
    slope = usual if found is None else found.joined(usual)
    return samples * np.exp(-min(slope.mean, _STEEPEST) * control), slope


def _slope(samples: Series, control: Series, stretches: Sequence[slice]) -> Slope | None:
    """Of least squares, each stretch by its samples; None of few or equal ones."""
    if len(stretches) < _FEWEST_STRETCHES:
        return None
    y = np.log([samples[one].mean() for one in stretches])
    x = np.array([control[one].mean() for one in stretches])
    weight = np.array([one.stop - one.start for one in stretches], np.float64)
    weight /= weight.sum()
    dx, dy = x - weight @ x, y - weight @ y
    spread = float(weight @ dx**2)
    if spread <= 0:
        return None
    mean = float(weight @ (dx * dy)) / spread
    left = float(weight @ (dy - mean * dx) ** 2)
    error = math.sqrt(left / spread / (len(stretches) - 2))
    return Slope(mean, error) if error > 0 else None
