"""How used seconds become billed seconds, and what part of a bill nobody used."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given

from epochcost.cost import Usage, billed_seconds, quote_at_rate
from epochcost.specs.billing import BILLING_RULES, Billing
from price_plans import counts, decimals, durations, rates, rules


@pytest.mark.parametrize(
    ("rule", "used", "billed"),
    [
        ("prorated", "0.25", "0.25"),
        ("per-second", "0.25", "60"),
        ("per-second", "60", "60"),
        ("per-second", "60.000001", "61"),
        ("per-second", "3779", "3779"),
        ("whole-hour", "1", "3600"),
        ("whole-hour", "3600", "3600"),
        ("whole-hour", "3600.5", "7200"),
    ],
)
def test_named_rules(rule: str, used: str, billed: str) -> None:
    """Each named rule at, below and above its step and its minimum."""
    assert billed_seconds(Decimal(used), BILLING_RULES[rule]) == Decimal(billed)


def test_ten_minutes_then_minutes() -> None:
    """The rule of Google's machines before 2017-09-26: ten minutes at least, then by the minute."""
    rule = Billing(increment_seconds=Decimal(60), minimum_seconds=Decimal(600))
    billed = [billed_seconds(Decimal(used), rule) for used in (5, 599, 600, 601, 660, 661)]
    assert billed == [600, 600, 600, 660, 660, 720]


@given(durations, rules)
def test_rounding_is_idempotent_and_never_down(used: Decimal, rule: Billing) -> None:
    """What is billed is at least what is used, and billing it again changes nothing."""
    billed = billed_seconds(used, rule)
    assert billed >= used
    assert billed_seconds(billed, rule) == billed


@given(durations, durations, rates, rules)
def test_a_bill_never_falls_when_time_grows(
    one: Decimal, other: Decimal, rate: Decimal, rule: Billing
) -> None:
    """The longer of two times costs at least as much as the shorter, to the last digit."""
    shorter, longer = (
        quote_at_rate(rate, rule, Usage(seconds)).total for seconds in sorted((one, other))
    )
    assert shorter <= longer


@given(decimals("1", "1e6"), decimals("1e-18", "1e-15"), rates)
def test_a_bill_does_not_fall_over_the_last_digits(
    used: Decimal, more: Decimal, rate: Decimal
) -> None:
    """Neither does it where two times differ by less than rounding shows."""
    rule = BILLING_RULES["per-second"]
    shorter = quote_at_rate(rate, rule, Usage(used)).total
    assert shorter <= quote_at_rate(rate, rule, Usage(used + more)).total


@given(durations, rates)
def test_coarser_billing_costs_more(used: Decimal, rate: Decimal) -> None:
    """At one rate whole hours cost at least as much as seconds, and seconds as a share."""
    hours, seconds, share = (
        quote_at_rate(rate, BILLING_RULES[rule], Usage(used)).total
        for rule in ("whole-hour", "per-second", "prorated")
    )
    assert hours >= seconds >= share


@given(durations, rates, rules, counts)
def test_every_machine_is_billed_by_itself(
    used: Decimal, rate: Decimal, rule: Billing, count: int
) -> None:
    """So many machines cost exactly so many times one."""
    one = quote_at_rate(rate, rule, Usage(used)).total
    many = quote_at_rate(rate, rule, Usage(used, count)).total
    with localcontext(prec=100):
        assert many == one * count


def test_the_unused_part_stands_apart() -> None:
    """428 s of a whole hour: what was used, what was not, and together an hour's price."""
    bill = quote_at_rate(Decimal("0.90"), BILLING_RULES["whole-hour"], Usage(Decimal(428)))
    assert [line.label for line in bill.lines] == ["compute, used", "compute, billed but unused"]
    assert [line.amount for line in bill.lines] == [Decimal("0.107"), Decimal("0.793")]
    assert sum(line.quantity for line in bill.lines) == 1
    assert bill.total == Decimal("0.90")


def test_no_line_for_nothing() -> None:
    """Where all that is billed was used there is one line."""
    bill = quote_at_rate(Decimal("0.90"), BILLING_RULES["per-second"], Usage(Decimal(428)))
    assert [line.label for line in bill.lines] == ["compute, used"]
