"""Quotes: lines that sum to the total, in any decimal context, and one clear line for bad input."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import Usage, quote, quote_at_rate
from epochcost.errors import InputError
from epochcost.specs.billing import BILLING_RULES, Billing
from epochcost.specs.price import Price
from price_plans import counts, durations, owned, rates, rented, rules

plans = st.one_of(
    st.builds(rented, amount=rates, billing=rules), st.just(owned()), st.just(owned("100"))
)
ROUNDINGS = [getattr(decimal, name) for name in dir(decimal) if name.startswith("ROUND_")]


@given(plans, durations, counts)
def test_lines_sum_to_the_total_exactly(price: Price, used: Decimal, count: int) -> None:
    """Added with digits to spare, the lines are the total; each is its quantity times its rate."""
    bill = quote(price, Usage(used, count))
    with decimal.localcontext(prec=500):
        assert sum(line.amount for line in bill.lines) == bill.total
        for line in bill.lines:
            # Quantity and amount are rounded once per machine, by half a last digit at most.
            slack = count * (1 + line.rate) * Decimal("1e-18")
            assert abs(line.quantity * line.rate - line.amount) <= slack


@given(
    plans,
    durations,
    counts,
    st.builds(
        decimal.Context,
        prec=st.integers(1, 40),
        rounding=st.sampled_from(ROUNDINGS),
        traps=st.sampled_from([[], [decimal.Inexact, decimal.Rounded, decimal.Subnormal]]),
    ),
)
def test_the_callers_decimal_context_does_not_matter(
    price: Price, used: Decimal, count: int, ambient: decimal.Context
) -> None:
    """A quote made under another precision, rounding and traps is the same quote."""
    expected = quote(price, Usage(used, count))
    with decimal.localcontext(ambient):
        got = quote(price, Usage(used, count))
        total = got.total
    assert got == expected
    assert total == expected.total


def test_the_quote_names_its_plan() -> None:
    """Plan, currency and whether its figures are assumed travel with the bill."""
    bill = quote(rented(currency="EUR"), Usage(Decimal(100)))
    assert (bill.price_id, bill.currency, bill.assumed) == ("p2.xlarge-on-demand", "EUR", False)
    assert quote(owned(), Usage(Decimal(100))).assumed
    assert quote_at_rate(Decimal(1), BILLING_RULES["prorated"], Usage(Decimal(1))).price_id is None


def test_another_rule_may_replace_the_plans() -> None:
    """A share of a longer job is prorated whatever the plan rounds to."""
    price = rented("1.675", "whole-hour")
    alone = quote(price, Usage(Decimal(1404)))
    share = quote(price, Usage(Decimal(1404)), billing=BILLING_RULES["prorated"])
    assert (alone.total, share.total) == (Decimal("1.675"), Decimal("0.65325"))


def test_a_rule_spelled_out_in_the_plan() -> None:
    """A plan's own table of billing is obeyed as the named rules are."""
    rule = Billing(increment_seconds=Decimal(60), minimum_seconds=Decimal(600))
    assert quote(rented("0.60", rule), Usage(Decimal(5))).total == Decimal("0.10")


@pytest.mark.parametrize(
    "seconds", ["0", "-1", "NaN", "sNaN", "Infinity", "-Infinity", "1e-19", "1e10"]
)
def test_impossible_times(seconds: str) -> None:
    """Zero, negative, not finite, too short to keep and longer than a century: one line each."""
    with pytest.raises(InputError, match=r"^duration: demanded .* got \S+ s$"):
        Usage(Decimal(seconds))


@pytest.mark.parametrize(("count", "vcpus"), [(0, None), (-1, None), (10**7, None), (1, 0)])
def test_impossible_counts(count: int, vcpus: int | None) -> None:
    """No machine, fewer, or more than anybody rents; and the same of vCPUs."""
    with pytest.raises(InputError, match=r"^(count|vcpus): demanded a whole number from 1 to"):
        Usage(Decimal(1), count, vcpus)


@pytest.mark.parametrize("rate", ["0", "-0.90", "NaN", "Infinity", "1e-19", "1e31"])
def test_impossible_rates(rate: str) -> None:
    """A rate that is nothing, negative, not a number or beyond every budget is refused."""
    with pytest.raises(InputError, match=r"^(rate|cost): demanded"):
        quote_at_rate(Decimal(rate), BILLING_RULES["prorated"], Usage(Decimal(1)))


def test_overflow_is_said() -> None:
    """What does not fit 60 digits is refused and never rounded away."""
    step = Billing(increment_seconds=Decimal("1e-60"))
    with pytest.raises(InputError, match="fit 60 digits"):
        quote(rented(billing=step), Usage(Decimal(10**9)))
    year_of_fortune = Usage(Decimal(3 * 10**9))
    with pytest.raises(InputError, match="at most"):
        quote_at_rate(Decimal("1e29"), BILLING_RULES["prorated"], year_of_fortune)
