"""Whether two measurements of one piece of work on one host differ, by interval and by size."""

from __future__ import annotations

from dataclasses import dataclass

from epochcost.statistics.ratio import Bounded, ratio

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
