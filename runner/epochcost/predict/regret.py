"""What it costs to follow predictions: how much dearer the machine is that they call cheapest.

Each accelerator is predicted without any row of its own. What devices cost by the hour is given.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epochcost.predict.design import Devices, designed
from epochcost.predict.process import Design, Vector
from epochcost.predict.withheld import Tried

# Fewer are no choice.
_LEAST_CANDIDATES = 5
_WITHIN = 0.1


@dataclass(frozen=True, slots=True)
class Regret:
    """Over ``choices`` among at least five accelerators each, by the same rows.

    ``within_a_tenth`` is the share whose pick costs at most a tenth more than the truly cheapest;
    ``median_percent`` and ``p90_percent`` say how much more it costs.
    """

    choices: int
    within_a_tenth: float
    median_percent: float
    p90_percent: float


def regrets(
    rows: Sequence[Tried], devices: Devices, hourly: Mapping[str, float]
) -> tuple[Regret, Regret]:
    """Of picking the cheapest by forecasts, and by the roofline; ``hourly`` is by device id."""
    design = designed([one.placed for one in rows], devices)
    prices = np.array([hourly.get(one.placed.device.id, math.nan) for one in rows])
    by = ([one.error for one in rows], [one.roofline for one in rows])
    forecasts, roof = (design.rate - np.array(errors) for errors in by)
    return regret_of(design, forecasts, prices), regret_of(design, roof, prices)


def regret_of(design: Design, predicted: Vector, prices: Vector) -> Regret:
    """Of logarithms of rates per device and prices of a device [n], NaN where there is none.

    Costs are those of an example: price over rate.
    """
    usable = np.isfinite(predicted) & np.isfinite(prices)
    choices: dict[tuple[int, float], list[int]] = defaultdict(list)
    for row in np.flatnonzero(usable):
        choices[int(design.edition[row]), float(design.batch[row])].append(int(row))
    over = []
    for rows in choices.values():
        true, expected = (
            _costs(design, np.log(prices) - rate, rows) for rate in (design.rate, predicted)
        )
        if len(true) >= _LEAST_CANDIDATES:
            pick = min(expected, key=expected.__getitem__)
            over.append(math.exp(true[pick] - min(true.values())) - 1)
    if not over:
        return Regret(0, 0.0, math.nan, math.nan)
    return Regret(
        len(over),
        round(sum(one <= _WITHIN for one in over) / len(over), 3),
        round(100 * float(np.median(over)), 1),
        round(100 * float(np.quantile(over, 0.9)), 1),
    )


def _costs(design: Design, costs: Vector, rows: Sequence[int]) -> dict[int, float]:
    """By group of devices, the median of a cost's logarithm over its rows."""
    groups: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        groups[int(design.group[row])].append(float(costs[row]))
    return {group: float(np.median(found)) for group, found in groups.items()}
