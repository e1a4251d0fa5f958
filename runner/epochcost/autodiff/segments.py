"""Where to cut a forward pass into segments, so that keeping the cuts costs little memory.

Works on positions and bytes alone; what becomes of the segments is left to ``checkpoint``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

# Parts of a pass with a cut to try in each.
_MOST_CUTS = 160
# Sizes of the largest segment that are tried, each so many times the one before.
_FINER = 1.2


def cheapest_cuts(alive: Sequence[int], inside: Sequence[int]) -> tuple[int, ...]:
    """Positions to cut at, in order; none where no cut saves anything.

    ``alive[p]`` are the bytes that a cut before node ``p`` keeps, ``inside[p]`` those that node
    ``p`` makes and a backward pass reads. Least is what all cuts keep and the largest segment
    holds: on a chain of n equal nodes √n segments (Chen et al., "Training deep nets with sublinear
    memory cost", 2016).
    """
    before = [0, *itertools.accumulate(inside)]
    tried = _candidates(alive, before)
    best: tuple[int, ...] = ()
    best_bytes = before[-1]
    limit = max(inside, default=0)
    while 0 < limit < before[-1]:
        cuts = _cuts_within(limit, tried, alive, before)
        if cuts is not None:
            held = sum(alive[cut] for cut in cuts) + _largest(cuts, before)
            if held < best_bytes:
                best, best_bytes = cuts, held
        limit = math.ceil(limit * _FINER)
    return best


def _candidates(alive: Sequence[int], before: Sequence[int]) -> list[int]:
    """Positions all along what is inside: of each equal part the one where least is alive."""
    narrowest: dict[int, int] = {}
    for place in range(1, len(alive)):
        part = before[place] * _MOST_CUTS // max(1, before[-1])
        if alive[place] <= alive[narrowest.get(part, place)]:
            narrowest[part] = place
    return sorted(narrowest.values())


def _cuts_within(
    limit: int, tried: Sequence[int], alive: Sequence[int], before: Sequence[int]
) -> tuple[int, ...] | None:
    """The cuts that keep least while no segment holds more than ``limit``; None: there are none."""
    ends = [0, *tried, len(before) - 1]
    kept: list[float] = [0]
    previous = [0]
    for place in range(1, len(ends)):
        choices = range(place - 1, -1, -1)
        near = itertools.takewhile(
            lambda other: before[ends[place]] - before[ends[other]] <= limit,  # noqa: B023
            choices,
        )
        cost, source = min(((kept[other], other) for other in near), default=(math.inf, -1))
        here = alive[ends[place]] if place < len(ends) - 1 else 0
        kept.append(cost + here)
        previous.append(source)
    if math.isinf(kept[-1]):
        return None
    cuts, place = [], previous[-1]
    while place > 0:
        cuts.append(ends[place])
        place = previous[place]
    return tuple(reversed(cuts))


def _largest(cuts: Sequence[int], before: Sequence[int]) -> int:
    ends = [0, *cuts, len(before) - 1]
    return max(before[b] - before[a] for a, b in itertools.pairwise(ends))
