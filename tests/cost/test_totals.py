"""Totals without lines are those of the bills that they stand for, and refusals are the same."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import Quote, Usage, quote, share
from epochcost.cost.bill import quote_total, share_total
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing, Component
from price_plans import all_plans, job_seconds, owned, plan, rented, rules

usages = st.builds(
    Usage,
    duration_seconds=job_seconds,
    count=st.integers(1, 64),
    runs=st.integers(1, 50),
    vcpus=st.none() | st.integers(1, 64),
)


@given(all_plans, usages)
def test_the_total_of_a_job_is_that_of_its_lines(price: Price, usage: Usage) -> None:
    """To the last decimal, whatever starts, is interrupted or stored."""
    assert quote_total(price, usage) == quote(price, usage, credit=Decimal(0)).total


@given(all_plans, usages)
def test_the_total_of_a_share_is_that_of_its_lines(price: Price, usage: Usage) -> None:
    """To the last decimal; what has no share has no total either."""
    assert _said(share_total, price, usage) == _said(_shared, price, usage)


@given(rules, usages)
def test_another_billing_rule_is_heeded(rule: Billing, usage: Usage) -> None:
    """As a bill heeds it."""
    price = rented("0.90", "whole-hour")
    bill: Quote = quote(price, usage, billing=rule, credit=Decimal(0))
    assert quote_total(price, usage, billing=rule) == bill.total


@pytest.mark.parametrize("total", [quote_total, share_total])
def test_what_has_no_bill_has_no_total(total: Callable[[Price, Usage], Decimal]) -> None:
    """Vcpus that are not known, and data that the plan does not say how to charge for."""
    with pytest.raises(InputError, match="per vCPU"):
        total(owned(per_vcpu=True), Usage(Decimal(3600)))
    with pytest.raises(InputError, match="egress"):
        total(rented("0.90"), Usage(Decimal(3600), egress_gb=Decimal(1)))


def test_data_that_leaves_is_charged() -> None:
    """By a plan that has a price for it, on top of the hours."""
    part = Component(label="egress", amount=Decimal("0.12"), per="gb")
    price = plan(amount=Decimal("0.90"), billing="prorated", components=(part,))
    assert quote_total(price, Usage(Decimal(3600), egress_gb=Decimal(10))) == Decimal("2.10")


def _shared(price: Price, usage: Usage) -> Decimal:
    return share(price, usage).total


def _said(total: Callable[[Price, Usage], Decimal], price: Price, usage: Usage) -> Decimal | str:
    try:
        return total(price, usage)
    except InputError as error:
        return str(error)
