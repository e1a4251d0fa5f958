"""The highest rate that keeps a bound is found in a limited number of tries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from epochcost.measure.loadgen import MOST_TRIES, PRECISION, highest_rate


@given(limit=st.floats(2, 1000), start=st.floats(1, 2000))
def test_the_limit_is_found_to_five_percent(limit: float, start: float) -> None:
    """From above and below, few tries find a rate that keeps the bound, within 5 % of the limit."""
    tried: list[float] = []

    def keeps(rate: float) -> bool:
        tried.append(rate)
        return rate <= limit

    found = highest_rate(keeps, start, floor=1)
    assert found in tried
    assert found is not None
    assert found <= limit
    assert len(tried) <= MOST_TRIES
    if len(tried) < MOST_TRIES:
        assert limit <= found * (1 + PRECISION)


def test_a_bound_that_nothing_keeps_has_no_rate() -> None:
    """If no rate keeps the bound, the lowest rate is tried once and there is no result."""
    tried: list[float] = []
    assert highest_rate(lambda rate: bool(tried.append(rate)), start=100, floor=30) is None
    assert tried == [100, 50, 30]


def test_a_start_below_the_floor_is_the_floor() -> None:
    """A start below the lowest rate tries the lowest rate only."""
    tried: list[float] = []
    assert highest_rate(lambda rate: bool(tried.append(rate)), start=1, floor=10) is None
    assert tried == [10]
