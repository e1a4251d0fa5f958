"""Quotes: lines that sum to the total, in any decimal context, and one clear line for bad input."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import Usage, quote, quote_at_rate, share
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import BILLING_RULES, Billing
from price_plans import (
    all_plans,
    amounts,
    counts,
    durations,
    figures,
    job_seconds,
    owned,
    plan,
    rates,
    rented,
    rented_plans,
    rules,
)

HOUR = Decimal(3600)
WHOLE_HOUR, PRORATED = BILLING_RULES["whole-hour"], BILLING_RULES["prorated"]
usages = st.builds(
    Usage,
    duration_seconds=job_seconds,
    count=st.integers(1, 64),
    runs=st.integers(1, 50),
)
ROUNDINGS = [getattr(decimal, name) for name in dir(decimal) if name.startswith("ROUND_")]


@given(all_plans, usages)
def test_lines_sum_to_the_total_exactly(price: Price, usage: Usage) -> None:
    """Added with digits to spare, the lines are the total; each is its quantity times its rate."""
    bill = quote(price, usage)
    with decimal.localcontext(prec=500):
        assert sum(line.amount for line in bill.lines) == bill.total
        for line in bill.lines:
            # Of up to four parts each, quantity, rate and amount are rounded by half a last digit.
            slack = 4 * (line.quantity + usage.machines * (1 + line.rate)) * Decimal("1e-18")
            assert abs(line.quantity * line.rate - line.amount) <= slack


@given(st.builds(rented, amount=rates, billing=rules), durations, counts)
def test_lines_sum_at_any_size(price: Price, used: Decimal, count: int) -> None:
    """So they do at the smallest and the largest of rates, times and numbers of machines."""
    bill = quote(price, Usage(used, count))
    with decimal.localcontext(prec=500):
        assert sum(line.amount for line in bill.lines) == bill.total


@given(
    all_plans,
    usages,
    st.builds(
        decimal.Context,
        prec=st.integers(1, 40),
        rounding=st.sampled_from(ROUNDINGS),
        traps=st.sampled_from([[], [decimal.Inexact, decimal.Rounded, decimal.Subnormal]]),
    ),
)
def test_the_callers_decimal_context_does_not_matter(
    price: Price, usage: Usage, ambient: decimal.Context
) -> None:
    """A quote made under another precision, rounding and traps is the same quote."""
    expected = quote(price, usage)
    with decimal.localcontext(ambient):
        got = quote(price, usage)
        total = got.total
    assert got == expected
    assert total == expected.total


@given(all_plans, job_seconds, job_seconds)
def test_a_bill_never_falls_when_time_grows(price: Price, one: Decimal, other: Decimal) -> None:
    """Under every plan the longer of two jobs costs at least as much, and takes as long."""
    shorter, longer = (quote(price, Usage(seconds)) for seconds in sorted((one, other)))
    assert shorter.total <= longer.total
    assert shorter.elapsed_seconds <= longer.elapsed_seconds


@given(all_plans, job_seconds, st.integers(2, 50))
def test_many_jobs_never_cost_less_than_one(price: Price, used: Decimal, runs: int) -> None:
    """So many runs in a row cost so many times one, and take so many times as long."""
    one, many = quote(price, Usage(used)), quote(price, Usage(used, runs=runs))
    assert one.total <= many.total
    assert many.elapsed_seconds == one.elapsed_seconds * runs
    if price.owned is None:
        assert many.total == one.total * runs


@given(rented_plans(), usages)
def test_whole_hours_cost_at_least_their_share(price: Price, usage: Usage) -> None:
    """Rounding up never makes a bill smaller, and neither does starting."""
    hours, seconds = (quote(price, usage, billing=rule).total for rule in (WHOLE_HOUR, PRORATED))
    assert hours >= seconds
    if price.amount is not None or price.commitment is not None:
        assert seconds >= share(price, usage).total


@given(all_plans, usages)
def test_time_on_the_wall_is_at_least_time_at_work(price: Price, usage: Usage) -> None:
    """Start-ups, restarts and failures add to the time and never take from it."""
    elapsed = quote(price, usage).elapsed_seconds
    assert elapsed >= usage.duration_seconds * usage.runs


@given(amounts, rules, usages)
def test_spot_without_interruptions_costs_its_list_price(
    amount: Decimal, rule: Billing, usage: Usage
) -> None:
    """At a rate of 0 a spot machine is billed as one on demand at that price."""
    calm = {"rate_per_hour": Decimal(0), "restart_seconds": Decimal(600)}
    spot = plan(plan="spot", amount=amount, billing=rule, interruptions=calm)
    assert quote(spot, usage).lines == quote(rented(amount, rule), usage).lines


@given(figures("1", "1e5"), amounts, st.sampled_from((12, 36)), usages)
def test_a_reservation_in_full_use(
    upfront: Decimal, hourly: Decimal, months: int, usage: Usage
) -> None:
    """An hour costs the upfront payment over the hours of the term, and the hourly one."""
    terms = {"term_months": Decimal(months), "payment": "partial-upfront"}
    paid = {"upfront": upfront, "hourly": hourly, **terms}
    total = quote(plan(plan="reserved", commitment=paid, billing="prorated"), usage).total
    hours = usage.duration_seconds * usage.machines / HOUR
    # An hour's price is kept to 18 decimals, and so is what each machine costs.
    rounding = (hours + usage.machines) * Decimal("1e-17")
    assert abs(total - hours * (upfront / (months * 730) + hourly)) <= rounding


def test_the_quote_names_its_plan() -> None:
    """Plan, currency, date and whether its figures are assumed travel with the bill."""
    bill = quote(rented(currency="EUR"), Usage(Decimal(100)))
    assert bill.as_of == rented().as_of
    assert (bill.price_id, bill.currency, bill.assumed) == ("p2.xlarge-on-demand", "EUR", False)
    assert quote(owned(), Usage(Decimal(100))).assumed
    assert quote_at_rate(Decimal(1), BILLING_RULES["prorated"], Usage(Decimal(1))).price_id is None


def test_another_rule_may_replace_the_plans() -> None:
    """Whatever the plan rounds to, the same job can be billed by another rule."""
    price = rented("1.675", "whole-hour")
    alone = quote(price, Usage(Decimal(1404)))
    prorated = quote(price, Usage(Decimal(1404)), billing=PRORATED)
    assert (alone.total, prorated.total) == (Decimal("1.675"), Decimal("0.65325"))


def test_a_share_has_no_start_no_run_and_no_credit() -> None:
    """What belongs to the whole job is not in an epoch's share of it."""
    price = plan(
        amount=Decimal(2),
        billing="whole-hour",
        start={"seconds": Decimal(600), "failure_probability": Decimal("0.5")},
        components=[
            {"label": "job", "amount": Decimal(5), "per": "run"},
            {"label": "disk", "amount": Decimal("0.1"), "count": Decimal(73), "per": "gb-month"},
        ],
        credit={"amount": Decimal(100)},
    )
    bill = share(price, Usage(HOUR))
    assert [line.label for line in bill.lines] == ["compute, used", "disk"]
    assert (bill.total, bill.credit_left) == (Decimal("2.01"), None)
    assert bill.elapsed_seconds == HOUR


def test_a_plan_per_run_has_no_share() -> None:
    """Without a price per hour a share of a job has no price, and is not free."""
    price = plan(components=[{"label": "job", "amount": Decimal(5), "per": "run"}])
    assert quote(price, Usage(HOUR)).total == 5
    with pytest.raises(InputError, match=r"^p2.xlarge-on-demand: expected a price per hour"):
        share(price, Usage(HOUR))


@pytest.mark.parametrize("price", [rented(), owned()])
def test_egress_without_a_price_is_not_free(price: Price) -> None:
    """Data moved under a plan that has no price for it is refused."""
    moving = Usage(HOUR, egress_gb=Decimal(1))
    for bill in (quote, share):
        with pytest.raises(InputError, match='expected a plan with a component per = "gb"'):
            bill(price, moving)
    with pytest.raises(InputError, match=r"^egress: expected a price plan"):
        quote_at_rate(Decimal(1), PRORATED, moving)


def test_an_unknown_currency() -> None:
    """A bare rate in a currency that is none is refused."""
    with pytest.raises(InputError, match=r"^currency: expected a code of ISO 4217.*got 'USB'"):
        quote_at_rate(Decimal(1), PRORATED, Usage(HOUR), "USB")


def test_a_rule_spelled_out_in_the_plan() -> None:
    """A plan's own table of billing is obeyed as the named rules are."""
    rule = Billing(increment_seconds=Decimal(60), minimum_seconds=Decimal(600))
    assert quote(rented("0.60", rule), Usage(Decimal(5))).total == Decimal("0.10")


@pytest.mark.parametrize(
    "seconds", ["0", "-1", "NaN", "sNaN", "Infinity", "-Infinity", "1e-19", "1e10"]
)
def test_impossible_times(seconds: str) -> None:
    """Zero, negative, not finite, too short to keep and longer than a century: one line each."""
    with pytest.raises(InputError, match=r"^duration: expected .* got \S+ s$"):
        Usage(Decimal(seconds))


@pytest.mark.parametrize(("count", "vcpus"), [(0, None), (-1, None), (10**7, None), (1, 0)])
def test_impossible_counts(count: int, vcpus: int | None) -> None:
    """No machine, fewer, or more than anybody rents; and the same of vCPUs."""
    with pytest.raises(InputError, match=r"^(count|vcpus): expected a whole number from 1 to"):
        Usage(Decimal(1), count, vcpus)


@pytest.mark.parametrize(
    ("field", "value"),
    [("runs", 0), ("runs", 10**7), ("egress_gb", Decimal(-1)), ("egress_gb", Decimal("NaN"))],
)
def test_impossible_runs_and_egress(field: str, value: Decimal | int) -> None:
    """No run, too many, data moved inwards or not a number: one line each."""
    with pytest.raises(InputError, match=r"^(runs|egress): expected"):
        Usage(Decimal(1), **{field: value})  # type: ignore[arg-type]


def test_too_many_machines_in_a_row() -> None:
    """Machines at once and runs in a row are limited together."""
    with pytest.raises(InputError, match=r"^count times runs: expected"):
        Usage(Decimal(1), 10**4, runs=10**4)


@pytest.mark.parametrize("rate", ["0", "-0.90", "NaN", "Infinity", "1e-19", "1e31"])
def test_impossible_rates(rate: str) -> None:
    """A rate that is nothing, negative, not a number or beyond every budget is refused."""
    with pytest.raises(InputError, match=r"^(rate|cost): expected"):
        quote_at_rate(Decimal(rate), BILLING_RULES["prorated"], Usage(Decimal(1)))


def test_overflow_is_said() -> None:
    """What does not fit 60 digits is refused and never rounded away."""
    step = Billing.model_construct(increment_seconds=Decimal("1e-60"), minimum_seconds=Decimal(0))
    with pytest.raises(InputError, match="fit 60 digits"):
        quote(rented(billing=step), Usage(Decimal(10**9)))
    year_of_fortune = Usage(Decimal(3 * 10**9))
    with pytest.raises(InputError, match="at most"):
        quote_at_rate(Decimal("1e29"), BILLING_RULES["prorated"], year_of_fortune)
