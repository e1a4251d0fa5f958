"""The cheapest, its rivals and the frontier of time and cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import Candidate, Estimate, cheapest, frontier, rivals
from epochcost.errors import InputError


def candidate(
    key: str, seconds: int, mean: int, spread: int = 0, currency: str = "USD"
) -> Candidate[str]:
    """A way to do a job, its cost known to so much to either side."""
    ends = [Decimal(mean + shift) for shift in (-spread, 0, spread)]
    return Candidate(key, Decimal(seconds), Estimate(*ends, currency, "plan", assumed=False))


small = st.integers(1, 8)
candidates = st.lists(st.tuples(small, small), max_size=12).map(
    lambda pairs: [candidate(str(n), *pair) for n, pair in enumerate(pairs)]
)


def beats(one: Candidate[str], other: Candidate[str]) -> bool:
    """Whether one is at least as good in both and better in one, straight from the definition."""
    no_worse = one.seconds <= other.seconds and one.cost.mean <= other.cost.mean
    better = one.seconds < other.seconds or one.cost.mean < other.cost.mean
    return no_worse and better


@given(candidates)
def test_the_frontier_by_definition(listed: list[Candidate[str]]) -> None:
    """Exactly those that no other beats are on it, the fastest first."""
    found = frontier(listed)
    unbeaten = {one.key for one in listed if not any(beats(other, one) for other in listed)}
    assert {one.key for one in found} == unbeaten
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)


@given(candidates.filter(bool))
def test_the_cheapest_is_on_the_frontier(listed: list[Candidate[str]]) -> None:
    """Nothing costs less, and of equal costs nothing is faster."""
    best = cheapest(listed)
    assert best in frontier(listed)
    assert best is not None
    assert best.cost.mean == min(one.cost.mean for one in listed)


def test_none_of_none() -> None:
    """Without candidates there is no cheapest and no frontier."""
    assert cheapest([]) is None
    assert frontier([]) == ()


def test_rivals_are_those_whose_interval_reaches() -> None:
    """5 ± 1 may be as cheap as 4 ± 1 and as 6 ± 2; 9 ± 1 is surely dearer."""
    best = candidate("best", 9, 4, 1)
    near, far, wide = candidate("n", 1, 5, 1), candidate("f", 1, 9, 1), candidate("w", 1, 6, 2)
    assert rivals(best, [far, wide, best, near]) == (near, wide)


def test_mixed_currencies_are_refused() -> None:
    """Dollars and euros are not compared without a rate."""
    mixed = [candidate("a", 1, 1), candidate("b", 1, 1, currency="EUR")]
    for question in (cheapest, frontier):
        with pytest.raises(InputError, match="one currency; got EUR, USD"):
            question(mixed)
    with pytest.raises(InputError, match="one currency"):
        rivals(mixed[0], mixed)
