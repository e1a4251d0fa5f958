"""How many times as large one mean is as another, with the interval of that ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounded:
    """A positive estimate between the ends of its interval, all in one unit."""

    low: float
    mean: float
    high: float


def ratio(above: Bounded, below: Bounded) -> Bounded:
    """``above`` over ``below``, which were measured independently.

    The ends recover each side's variance from its own interval (MOVER, Zou & Donner 2008), on the
    logarithmic scale, where a ratio is a difference and no end is negative.
    """
    middle = above.mean / below.mean
    shorter = math.hypot(math.log(above.mean / above.low), math.log(below.high / below.mean))
    longer = math.hypot(math.log(above.high / above.mean), math.log(below.mean / below.low))
    return Bounded(middle * math.exp(-shorter), middle, middle * math.exp(longer))
