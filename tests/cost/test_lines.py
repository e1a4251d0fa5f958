"""Free credit: one negative line, never beyond the bill or the credit, used up job by job."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import Quote, Usage, quote
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Credit
from price_plans import credits_given, job_seconds, plan, rented, rented_plans

HOUR = Decimal(3600)


def with_credit(price: Price, credit: Credit) -> Price:
    """The same plan, with free credit."""
    return price.model_copy(update={"credit": credit})


def quotes_in_a_row(price: Price, usages: list[Usage]) -> list[Quote]:
    """Bills of jobs one after another, each with the credit that those before it left."""
    bills: list[Quote] = []
    for usage in usages:
        bills.append(quote(price, usage, credit=bills[-1].credit_left if bills else None))
    return bills


def test_the_credit_is_a_line() -> None:
    """Ten dollars pay three hours at $0.90: nothing to pay, and $7.30 left."""
    price = plan(amount=Decimal("0.90"), credit={"amount": Decimal(10), "label": "trial"})
    bill = quote(price, Usage(3 * HOUR))
    assert (bill.lines[-1].label, bill.lines[-1].amount) == ("trial", Decimal("-2.70"))
    assert (bill.total, bill.before_credit) == (0, Decimal("2.70"))
    assert (bill.credit_used, bill.credit_left) == (Decimal("2.70"), Decimal("7.30"))


def test_jobs_in_a_row_use_it_up() -> None:
    """Three jobs of $0.90 against two dollars: free, free in part, paid."""
    price = plan(amount=Decimal("0.90"), credit={"amount": Decimal("1.50")})
    bills = quotes_in_a_row(price, [Usage(HOUR)] * 3)
    assert [bill.total for bill in bills] == [0, Decimal("0.30"), Decimal("0.90")]
    assert [bill.credit_left for bill in bills] == [Decimal("0.60"), 0, 0]
    assert len(bills[-1].lines) == 1


def test_no_credit_no_line() -> None:
    """A plan without credit says nothing of one."""
    bills = quotes_in_a_row(rented(), [Usage(HOUR)] * 2)
    assert [(bill.credit_left, bill.credit_used) for bill in bills] == [(None, 0), (None, 0)]


def test_what_is_left_of_a_credit_may_be_given() -> None:
    """A provider's credit goes from plan to plan: each quote takes what the last one left."""
    first = quote(rented("0.90"), Usage(HOUR), credit=Decimal(1))
    second = quote(rented("3.06"), Usage(HOUR), credit=first.credit_left)
    assert second.total == Decimal("2.96")


@pytest.mark.parametrize("left", ["-1", "NaN", "Infinity", "1e31"])
def test_impossible_credit(left: str) -> None:
    """Negative, not a number, without end: one line."""
    with pytest.raises(InputError, match=r"^credit: expected an amount of at least 0"):
        quote(rented(), Usage(HOUR), credit=Decimal(left))


@given(rented_plans(), credits_given, st.lists(job_seconds, min_size=1, max_size=5))
def test_nobody_is_paid_and_nothing_is_given_twice(
    price: Price, credit: Credit, times: list[Decimal]
) -> None:
    """No bill is negative; in all, credit pays the smaller of itself and the bills."""
    usages = [Usage(seconds) for seconds in times]
    bills = quotes_in_a_row(with_credit(price, credit), usages)
    whole = [quote(price, usage).total for usage in usages]
    assert all(bill.total >= 0 for bill in bills)
    assert [bill.before_credit for bill in bills] == whole
    used = sum(bill.credit_used for bill in bills)
    assert used == min(credit.amount, sum(whole))
    assert bills[-1].credit_left == credit.amount - used
