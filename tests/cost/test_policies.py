"""Policies compared: the best single zone, what moving saves, and starts that have no end."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from epochcost.cost.estimate import Time
from epochcost.cost.market import Market
from epochcost.cost.policies import compare_policies, saving_interval
from epochcost.cost.replay import MovingJob
from epochcost.cost.spot import daly_interval_seconds
from epochcost.errors import InputError
from epochcost.specs.prices.traces import Trace, ZoneTrace

HOUR = 3600.0
# A costs 1 and then 4 dollars, b 3 and then 2: a is best at first, b on the whole.
PRICES = {"a": [1.0] * 4 + [4.0] * 16, "b": [3.0] * 4 + [2.0] * 16}
JOB = MovingJob(work_seconds=4 * HOUR, interval_seconds=HOUR, on_demand_per_hour=5.0)
TIME = Time(Decimal(3 * 3600), Decimal(4 * 3600), Decimal(6 * 3600))


def market(taken: tuple[int, ...] = ()) -> Market:
    """Both zones by the hour; a has no machine in some hours."""
    times = np.arange(20) * HOUR
    zones = {
        zone: ZoneTrace(
            times,
            np.array(prices),
            np.array([zone == "b" or hour not in taken for hour in range(20)]),
        )
        for zone, prices in PRICES.items()
    }
    return Market(Trace(zones, "USD", 0.0, 20 * HOUR, "made"))


def test_policies_by_hand() -> None:
    """From 0, 7 and 14 h: b alone costs 12, 8 and 8 dollars; moving when it pays 4, 8 and 8."""
    found = compare_policies(market(), JOB, TIME, ["gap"], 3)
    stay, moving = found.results
    assert (stay.policy, stay.zone, found.starts, found.compared) == ("stay", "b", 3, 3)
    assert stay.cost.mean == pytest.approx(28 / 3)
    assert stay.cost.worst == pytest.approx(12)
    assert moving.cost.mean == pytest.approx(20 / 3)
    assert moving.saved.mean == pytest.approx((1 - 4 / 12) / 3)
    assert (moving.low, moving.high) == (pytest.approx((3 + 6 + 6) / 3), pytest.approx(32 / 3))
    assert found.on_demand == pytest.approx(20)


def test_starts_without_an_end_are_left_out_for_all() -> None:
    """From 14 h a has no machine any more; b, which ends every start, is the zone to stay in."""
    found = compare_policies(market(tuple(range(14, 20))), JOB, TIME, ["cheapest"], 3)
    assert (found.results[0].zone, found.compared) == ("b", 3)
    with pytest.raises(InputError, match="ends under every policy, found it in 0 of 3 starts"):
        compare_policies(market_without_machines(), JOB, TIME, ["cheapest"], 3)


def market_without_machines() -> Market:
    """A zone that never has one."""
    rows = ZoneTrace(np.array([0.0]), np.array([1.0]), np.array([False]))
    return Market(Trace({"a": rows}, "USD", 0.0, 20 * HOUR, "made"))


def test_the_interval_between_saves() -> None:
    """Daly's at one interruption in the 39 h that both zones run; ten minutes without any."""
    got = saving_interval(market((7,)), 30.0)
    assert got == pytest.approx(float(daly_interval_seconds(Decimal(30), Decimal(39 * 3600))))
    assert saving_interval(market(), 30.0) == saving_interval(market((7,)), 0.0) == 600
