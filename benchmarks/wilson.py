"""The interval of a share of trials, such as the share of intervals that contain the true mean."""

from __future__ import annotations

import math
from statistics import NormalDist

from epochcost.statistics.quantiles import LEVEL


def wilson_interval(hits: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """The interval of a share with ``hits`` hits in ``trials`` trials (Wilson 1927, JASA 22)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = hits / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, middle - half), min(1.0, middle + half)
