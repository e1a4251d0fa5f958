"""How often a job that may be interrupted saves its state: the optimum of Daly.

What saving so often costs is left to `cost.spot`.
"""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.tracing import square_root, where


def daly_interval_seconds(save_seconds: Decimal, seconds_between: Decimal) -> Decimal:
    """The work between saves by the higher-order optimum, good where saves are long, too.

    J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
    Future Generation Computer Systems 22 (3), 2006, pp. 303-312, equation 37: with s the time of
    a save and M the mean time between interruptions,
    sqrt(2 s M) (1 + sqrt(s / 2M) / 3 + (s / 2M) / 9) - s, and M from s = 2 M on.
    """
    with exact_arithmetic():
        share = save_seconds / (2 * seconds_between)
        first = square_root(2 * save_seconds * seconds_between)
        higher = first * (1 + square_root(share) / 3 + share / 9) - save_seconds
        return where(2 * seconds_between <= save_seconds, seconds_between, higher)
