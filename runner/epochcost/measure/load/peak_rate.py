"""The highest rate of arrivals that keeps a latency bound, found by trying. Pure: the try is given.

Owns the search only; what a try is (a run of LoadGen) is left to ``scenario``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# Asks whether a rate, in samples per second, keeps the bound.
Keeps = Callable[[float], bool]

# A rate is told to 5 %: neighbouring tries of a few hundred Poisson arrivals differ by as much.
PRECISION = 0.05
# From 0.7 of the capacity, fourteen tries reach 5 % within three orders of magnitude.
MOST_TRIES = 16
_UP = 1.25
_DOWN = 2.0


def highest_rate(keeps: Keeps, start: float, floor: float) -> float | None:
    """Bracket the highest rate that keeps the bound, then bisect on a logarithmic scale.

    Goes down from ``start`` by halves, at the lowest to ``floor``, or up by quarters. Returns the
    highest rate that was seen to keep the bound, None where not even ``floor`` does.
    """
    low, high, rate = 0.0, math.inf, max(start, floor)
    for _ in range(MOST_TRIES):
        if keeps(rate):
            low = rate
        elif rate <= floor:
            return None
        else:
            high = rate
        if low and high <= low * (1 + PRECISION):
            break
        rate = _next(low, high, floor)
    return low or None


def _next(low: float, high: float, floor: float) -> float:
    if not low:
        return max(floor, high / _DOWN)
    if math.isinf(high):
        return low * _UP
    return math.sqrt(low * high)
