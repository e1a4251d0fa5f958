"""The cheapest way, the frontier of time and cost, and choices under limits."""

from __future__ import annotations

import re
from decimal import Decimal
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost.compare import Accuracy, Candidate, Limits, cheapest_batch, frontier
from epochcost.cost.estimate import Estimate
from epochcost.errors import InputError
from epochcost.units import money, seconds


def candidate(key: str, seconds: int, cost: int, currency: str = "USD") -> Candidate[str]:
    """A way to do a job, with an exact cost."""
    amount = Decimal(cost)
    estimate = Estimate(amount, amount, amount, currency, "plan", assumed=False)
    return Candidate(key, Decimal(seconds), estimate)


digit = st.integers(1, 9)
candidates = st.lists(st.tuples(digit, digit), min_size=1, max_size=12).map(
    lambda pairs: [candidate(str(n), *pair) for n, pair in enumerate(pairs)]
)


def beats(one: Candidate[str], other: Candidate[str]) -> bool:
    """Whether one way is at least as good in time and cost and better in one, by definition."""
    no_worse = one.seconds <= other.seconds and one.cost.mean <= other.cost.mean
    better = one.seconds < other.seconds or one.cost.mean < other.cost.mean
    return no_worse and better


@given(candidates)
def test_the_frontier_by_definition(listed: list[Candidate[str]]) -> None:
    """The frontier has exactly the ways that no other way beats, the fastest first."""
    found = frontier(listed)
    unbeaten = {one.key for one in listed if not any(beats(other, one) for other in listed)}
    assert {one.key for one in found} == unbeaten
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)


@given(candidates, digit)
def test_deadlines_by_definition(listed: list[Candidate[str]], deadline: int) -> None:
    """The choice is the cheapest way in time. If none is in time, the message names the fastest."""
    limits = Limits(Decimal(deadline))
    meeting = [way for way in listed if way.seconds <= deadline]
    if meeting:
        choice = limits.choice(listed, attrgetter("key"), "a job")
        assert choice in meeting
        assert choice.cost.mean == min(way.cost.mean for way in meeting)
    else:
        least = seconds(float(min(way.seconds for way in listed)))
        with pytest.raises(InputError, match=f"a job, found none: nearest is .* in {least}$"):
            limits.choice(listed, attrgetter("key"), "a job")


@given(candidates, digit)
def test_budgets_by_definition(listed: list[Candidate[str]], budget: int) -> None:
    """The choice is the fastest way within budget. If none is, the message names the cheapest."""
    limits = Limits(budget=Decimal(budget))
    within = [way for way in listed if way.cost.mean <= budget]
    if within:
        choice = limits.choice(listed, attrgetter("key"), "a job")
        assert choice in within
        assert choice.seconds == min(way.seconds for way in within)
    else:
        least = re.escape(money(min(way.cost.mean for way in listed)))
        with pytest.raises(InputError, match=f"a job, found none: nearest is .*: {least} in"):
            limits.choice(listed, attrgetter("key"), "a job")


# Malta et al. 2019, p2.xlarge: accuracy at the stabilisation point, mean and spread of three runs.
MALTA = {
    64: Accuracy(Decimal("91.20"), Decimal("0.39")),
    128: Accuracy(Decimal("91.67"), Decimal("0.30")),
    256: Accuracy(Decimal("91.03"), Decimal("0.49")),
    512: Accuracy(Decimal("89.77"), Decimal("0.21")),
}


def test_batch_sizes_of_malta() -> None:
    """Batch size 512 is cheapest but not accurate enough, and the accuracy of 1024 is unknown."""
    prices = {64: 120, 128: 105, 256: 99, 512: 90, 1024: 50}
    ways = [(size, candidate(str(size), 1, cost)) for size, cost in prices.items()]
    got = cheapest_batch(ways, MALTA)
    assert (got.batch_size, got.demanded) == (256, Decimal("91.37"))
    assert got.choice == candidate("256", 1, 99)
    assert (got.less_accurate, got.unknown) == ((512,), (1024,))
