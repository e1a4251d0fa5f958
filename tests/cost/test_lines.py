"""Free credit: one negative line, never beyond the bill or the credit."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given

from epochcost.cost.bill import quote
from epochcost.cost.lines import Usage
from epochcost.specs.price import Price
from epochcost.specs.terms import Credit
from price_plans import credits_given, job_seconds, plan, rented_plans

HOUR = Decimal(3600)


def test_the_credit_is_a_line() -> None:
    """Of ten dollars of credit, three hours at $0.90 use $2.70. Nothing is left to pay."""
    price = plan(amount=Decimal("0.90"), credit={"amount": Decimal(10), "label": "trial"})
    bill = quote(price, Usage(3 * HOUR))
    assert (bill.lines[-1].label, bill.lines[-1].amount) == ("trial", Decimal("-2.70"))
    assert (bill.total, bill.before_credit) == (0, Decimal("2.70"))
    assert (bill.credit_used, bill.credit_left) == (Decimal("2.70"), Decimal("7.30"))


@given(rented_plans(), credits_given, job_seconds)
def test_nobody_is_paid(price: Price, credit: Credit, seconds: Decimal) -> None:
    """The credit pays the smaller of itself and the bill, so that no bill is negative."""
    bill = quote(price.model_copy(update={"credit": credit}), Usage(seconds))
    listed = quote(price, Usage(seconds))
    total = listed.total
    assert bill.before_credit == listed.before_credit == total
    assert bill.credit_used == min(credit.amount, total)
    assert bill.credit_left == credit.amount - bill.credit_used
    assert bill.total == total - bill.credit_used
