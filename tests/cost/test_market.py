"""Markets: zones' prices over time, and how often zones take a machine back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from epochcost.cost.market import Market
from epochcost.specs.prices.traces import Trace, ZoneTrace

HOUR = 3600.0
Rows = Sequence[tuple[float, float | None]]


def market(hours: float, **zones: Rows) -> Market:
    """Zones with prices, each from some hour on; None means no machine."""
    found = {
        zone: ZoneTrace(
            np.array([HOUR * hour for hour, _ in rows]),
            np.array([math.nan if price is None else price for _, price in rows]),
        )
        for zone, rows in zones.items()
    }
    return Market(Trace(found, "USD", 0.0, HOUR * hours))


TWO = {"a": [(0, 1.0), (2, None), (3, 0.5)], "b": [(1, 2.0), (5, 0.25)]}


def test_columns_by_hand() -> None:
    """Columns have the prices, the cheapest zone, the next taking back and the next change."""
    got = market(6, **TWO)
    inf = math.inf
    assert (got.times / HOUR).tolist() == [0, 1, 2, 3, 5]
    assert got.rate.tolist() == [[1, 1, inf, 0.5, 0.5], [inf, 2, 2, 2, 0.25]]
    assert got.cheapest.tolist() == [0, 0, 1, 0, 1]
    assert (got.until[0] / HOUR).tolist() == [2, 2, 2, inf, inf]
    assert (got.change / HOUR).tolist() == [1, 2, 3, 5, inf]


def test_amounts_by_hand() -> None:
    """Amounts of stretches: one that spans two prices, and two at a single price."""
    got = market(6, **TWO)
    zones, start, end = np.array([1, 0, 0]), np.array([3.5, 0, 1.5]), np.array([5.5, 2, 2])
    assert got.amounts(zones, start * HOUR, end * HOUR) == pytest.approx([3.125, 2, 0.5])


def test_rates_by_hand() -> None:
    """Rates of interruptions count hours with a machine only, not hours of waiting."""
    assert market(6, **TWO).interruptions_per_hour(0) == 1 / 5
    assert market(6, **TWO).interruptions_per_hour() == 1 / (5 + 5)
    assert market(6, **TWO).mean_price(0) == pytest.approx((2 * 1 + 3 * 0.5) / 5)
    never = market(6, c=[(0, None)])
    assert math.isinf(never.mean_price(0))
    assert never.interruptions_per_hour(0) == 0
