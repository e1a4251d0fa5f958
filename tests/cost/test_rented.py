"""How used seconds become billed seconds, and what part of a bill nobody used."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given

from epochcost.cost import Quote, Usage, billed_seconds, quote, quote_at_rate
from epochcost.specs.terms import BILLING_RULES, Billing
from price_plans import counts, decimals, durations, plan, rates, rules


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
        ("ten-minutes", "5", "600"),
        ("ten-minutes", "600", "600"),
        ("ten-minutes", "600.5", "660"),
        ("ten-minutes", "660", "660"),
    ],
)
def test_named_rules(rule: str, used: str, billed: str) -> None:
    """Each named rule at, below and above its step and its minimum."""
    assert billed_seconds(Decimal(used), BILLING_RULES[rule]) == Decimal(billed)


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


def bill_with(usage: Usage, **component: Any) -> Quote:
    """The bill at $1 an hour, started in 600 s, with one component more."""
    start = {"seconds": Decimal(600), "billed": False}
    return quote(plan(amount=Decimal(1), start=start, components=[component]), usage)


def test_storage_is_kept_for_the_time_on_the_wall() -> None:
    """730 GB for the hour that a start-up of 600 s and 3000 s of work take: one GB-month."""
    disk = {"label": "disk", "amount": Decimal("0.04"), "count": Decimal(730), "per": "gb-month"}
    line = bill_with(Usage(Decimal(3000)), **disk).lines[-1]
    assert (line.quantity, line.unit, line.amount) == (1, "GB-month", Decimal("0.04"))


def test_egress_is_what_the_usage_moves_in_all() -> None:
    """Two machines and three runs move 5 GB together; nothing moved is no line."""
    egress = {"label": "egress", "amount": Decimal("0.09"), "per": "gb"}
    moving = bill_with(Usage(Decimal(3600), 2, runs=3, egress_gb=Decimal(5)), **egress)
    assert (moving.lines[-1].unit, moving.lines[-1].amount) == ("GB", Decimal("0.45"))
    assert len(bill_with(Usage(Decimal(3600)), **egress).lines) == 1


def test_a_run_is_charged_once_on_all_machines() -> None:
    """Three runs on two machines are three runs."""
    job = {"label": "job", "amount": Decimal("0.50"), "per": "run"}
    line = bill_with(Usage(Decimal(3600), 2, runs=3), **job).lines[-1]
    assert (line.quantity, line.amount) == (3, Decimal("1.50"))
