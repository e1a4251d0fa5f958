"""Two bills taken apart: every part has its cause, and all parts sum to the change."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from epochcost.cost.difference import (
    Basis,
    amount_of_change,
    contributions,
    cost_changed,
    relative_change,
)
from epochcost.cost.estimate import MachineTime, Time, Unpriced
from epochcost.specs.price import Price
from price_plans import rented

SECONDS = st.decimals("0.001", "1000", places=3)
RATES = st.decimals("0.01", "100", places=2)


def basis(step: Decimal, steps: int, price: Price | None) -> Basis:
    """A job of some steps under a plan, billed by itself."""
    one = Time.exact(step)
    work = MachineTime(one.scaled(steps))
    return Basis(work.cost(price), work, one, price)


@settings(max_examples=30)
@given(*[st.tuples(SECONDS, st.integers(1, 10**6), RATES)] * 2)
def test_parts_sum_to_the_change(
    one: tuple[Decimal, int, Decimal], other: tuple[Decimal, int, Decimal]
) -> None:
    """Whatever changes, no cent of the change is without a cause."""
    before, after = (basis(step, steps, rented(amount=rate)) for step, steps, rate in (one, other))
    change = amount_of_change(before.cost, after.cost)
    assert sum((part.amount for part in contributions(before, after)), Decimal(0)) == change


def test_one_cause_is_one_part() -> None:
    """What did not change adds nothing."""
    price = rented(amount=Decimal(1))
    before = basis(Decimal(10), 3600, price)
    assert [part.cause for part in contributions(before, basis(Decimal(11), 3600, price))] == [
        "time"
    ]
    assert [part.cause for part in contributions(before, basis(Decimal(10), 3700, price))] == [
        "spec"
    ]
    dearer = rented(amount=Decimal(2))
    assert [part.cause for part in contributions(before, basis(Decimal(10), 3600, dearer))] == [
        "price"
    ]


def test_an_unknown_price_is_no_amount() -> None:
    """Between an amount and an unknown price there is a change, and no amount of it."""
    known = basis(Decimal(10), 10, rented(amount=Decimal(1)))
    unknown = basis(Decimal(10), 10, None)
    assert isinstance(unknown.cost, Unpriced)
    assert cost_changed(known.cost, unknown.cost)
    assert not cost_changed(unknown.cost, Unpriced("another reason"))
    assert amount_of_change(known.cost, unknown.cost) is None
    assert relative_change(unknown.cost, known.cost) is None
    assert contributions(known, unknown) == ()
