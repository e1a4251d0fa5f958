"""The interval of a share agrees with published tables."""

from __future__ import annotations

import pytest
from wilson import wilson_interval


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (95, 100, 0.8882, 0.9785), (9500, 10_000, 0.9456, 0.9541)],
)
def test_wilson_bounds_are_those_of_the_tables(
    hits: int, trials: int, low: float, high: float
) -> None:
    """The bounds agree with published tables to four digits, at the extremes as well."""
    assert wilson_interval(hits, trials) == pytest.approx((low, high), abs=1e-4)
