"""Intervals between checkpoints, against the papers' own numbers and against the cost itself."""

from __future__ import annotations

from decimal import Decimal

import pytest

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.spot import SpotJob, daly_interval_seconds, expected_time

HOUR = Decimal(3600)


def test_daly_by_hand() -> None:
    """For 2 s and 100 s the root of 2 s / 2 M is a tenth: 20 (1 + 1/30 + 1/900) - 2."""
    got = daly_interval_seconds(Decimal(2), Decimal(100))
    assert got.quantize(Decimal("1e-12")) == Decimal("18.688888888889")


def test_a_save_as_long_as_two_intervals() -> None:
    """From there on the mean time between interruptions itself is Daly's interval."""
    assert daly_interval_seconds(Decimal(200), Decimal(100)) == 100
    assert daly_interval_seconds(Decimal(0), Decimal(100)) == 0


@pytest.mark.parametrize(("save", "between"), [("5", "36000"), ("60", "7200"), ("300", "1800")])
def test_daly_is_the_cheapest_interval(save: str, between: str) -> None:
    """An eighth more or less work between saves takes longer; Young's is never better.

    Which is J. W. Young's first-order optimum, Communications of the ACM 17 (9), 1974, pp. 530-531.
    """
    best = daly_interval_seconds(Decimal(save), Decimal(between))

    def running(interval: Decimal) -> Decimal:
        work = 10**9 * interval
        job = SpotJob(work, 1 / Decimal(between), Decimal(0), Decimal(60), Decimal(save), interval)
        with exact_arithmetic():
            return expected_time(job).running / work

    young = (2 * Decimal(save) * Decimal(between)).sqrt()
    others = best * 7 / 8, best * 9 / 8, young
    assert all(running(best) < running(other) for other in others)
