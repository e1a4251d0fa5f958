"""How many times as large one mean is as another, and whether two measurements differ.

The ratio has an interval; two measurements of one piece of work on one host differ where it leaves
out 1 and the size of the change matters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounded:
    """A positive estimate between the ends of its interval, all in one unit; a low end may be 0."""

    low: float
    mean: float
    high: float


def ratio(above: Bounded, below: Bounded) -> Bounded:
    """``above`` over ``below``, which were measured independently.

    The ends recover each side's variance from its own interval (MOVER, Zou & Donner 2008), on the
    logarithmic scale, where a ratio is a difference and no end is negative. Beside an end at 0 the
    ratio is not bounded: 0, or infinity.
    """
    middle = above.mean / below.mean
    shorter = math.hypot(_log(above.mean, above.low), _log(below.high, below.mean))
    longer = math.hypot(_log(above.high, above.mean), _log(below.mean, below.low))
    return Bounded(middle * math.exp(-shorter), middle, middle * math.exp(longer))


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0 else math.inf


# Smaller changes concern nobody's bill, and repeated measurements drift by a few percent.
LEAST_EFFECT = 0.05
# One process cannot tell how another would have been placed: its interval is of itself alone.
FEWEST_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class TimeChange:
    """How many times as long the later measurement takes, and whether that can be said."""

    factor: Bounded
    significant: bool


def time_change(before: Bounded, after: Bounded, *, rounds: int) -> TimeChange:
    """Compare two means with their intervals; ``rounds`` are those of the side with fewer.

    Said is a change whose interval leaves out 1, that is at least ``LEAST_EFFECT``, and of which
    both sides were measured in ``FEWEST_ROUNDS`` processes at least.
    """
    factor = ratio(after, before)
    apart = factor.low > 1 or factor.high < 1
    large = abs(factor.mean - 1) >= LEAST_EFFECT
    return TimeChange(factor, apart and large and rounds >= FEWEST_ROUNDS)
