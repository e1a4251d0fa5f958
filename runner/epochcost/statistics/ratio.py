"""How many times as large one mean is as another, with the interval of that ratio."""

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
