"""Quotes: lines that sum to the total in any decimal context, and clear refusals of bad input."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost.bill import quote, quote_at_rate, share
from epochcost.cost.lines import Usage
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import BILLING_RULES, Billing
from price_plans import (
    all_plans,
    job_seconds,
    owned,
    plan,
    rented,
    rented_plans,
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
    """The lines sum to the total with no rounding. Each amount is quantity times rate."""
    bill = quote(price, usage)
    with decimal.localcontext(prec=500):
        assert sum(line.amount for line in bill.lines) == bill.total
        for line in bill.lines:
            # Of up to four parts each, quantity, rate and amount are rounded by half a last digit.
            slack = 4 * (line.quantity + usage.machines * (1 + line.rate)) * Decimal("1e-18")
            assert abs(line.quantity * line.rate - line.amount) <= slack


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
    """A caller's decimal precision, rounding and traps do not change a quote."""
    expected = quote(price, usage)
    with decimal.localcontext(ambient):
        got = quote(price, usage)
        total = got.total
    assert got == expected
    assert total == expected.total


@given(all_plans, job_seconds, job_seconds)
def test_a_bill_never_falls_when_time_grows(price: Price, one: Decimal, other: Decimal) -> None:
    """Under every plan the longer of two jobs costs and lasts at least as much as the shorter."""
    shorter, longer = (quote(price, Usage(seconds)) for seconds in sorted((one, other)))
    assert shorter.total <= longer.total
    assert shorter.elapsed_seconds <= longer.elapsed_seconds


@given(rented_plans(), usages)
def test_whole_hours_cost_at_least_their_share(price: Price, usage: Usage) -> None:
    """Whole hours cost at least the used time, and a whole job at least its share."""
    hours, seconds = (quote(price, usage, billing=rule).total for rule in (WHOLE_HOUR, PRORATED))
    assert hours >= seconds
    if price.amount is not None or price.commitment is not None:
        assert seconds >= share(price, usage).total


@given(all_plans, usages)
def test_time_on_the_wall_is_at_least_time_at_work(price: Price, usage: Usage) -> None:
    """Start-ups, restarts and failures never make the elapsed time shorter than the work."""
    elapsed = quote(price, usage).elapsed_seconds
    assert elapsed >= usage.duration_seconds * usage.runs


def test_a_share_has_no_start_no_run_and_no_credit() -> None:
    """An epoch's share of a job has no charges or credits of the whole job."""
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
    """A share of a job is refused, and not free, under a plan without a price per hour."""
    job = {"label": "job", "amount": Decimal(5), "per": "run"}
    price = plan(components=[job], start={"seconds": Decimal(600)})
    assert [(line.label, line.amount) for line in quote(price, Usage(HOUR)).lines] == [("job", 5)]
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


@pytest.mark.parametrize(
    "seconds", ["0", "-1", "NaN", "sNaN", "Infinity", "-Infinity", "1e-19", "1e10"]
)
def test_impossible_times(seconds: str) -> None:
    """Zero, negative, infinite, tiny and century-long times are each refused in one line."""
    with pytest.raises(InputError, match=r"^duration: expected .* got \S+ s$"):
        Usage(Decimal(seconds))


@pytest.mark.parametrize(("count", "vcpus"), [(0, None), (-1, None), (10**7, None), (1, 0)])
def test_impossible_counts(count: int, vcpus: int | None) -> None:
    """Counts of machines or vCPUs below 1 or far too large are refused."""
    with pytest.raises(InputError, match=r"^(count|vcpus): expected a whole number from 1 to"):
        Usage(Decimal(1), count, vcpus)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("runs", 0),
        ("runs", 10**7),
        ("runs", 10**6),
        ("egress_gb", Decimal(-1)),
        ("egress_gb", Decimal("NaN")),
    ],
)
def test_impossible_runs_and_egress(field: str, value: Decimal | int) -> None:
    """No runs, too many machines in all runs, and impossible egress are refused in one line."""
    with pytest.raises(InputError, match=r"^(runs|count times runs|egress): expected"):
        Usage(Decimal(1), 2, **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", ["0", "-0.90", "NaN", "Infinity", "1e-19", "1e31"])
def test_impossible_rates(rate: str) -> None:
    """A rate that is zero, negative, no finite number or out of range is refused."""
    with pytest.raises(InputError, match=r"^(rate|cost): expected"):
        quote_at_rate(Decimal(rate), BILLING_RULES["prorated"], Usage(Decimal(1)))


def test_overflow_is_said() -> None:
    """A number that does not fit 60 digits is refused and never rounded away."""
    assert quote_at_rate(Decimal("1e20"), PRORATED, Usage(HOUR)).total == 10**20
    step = Billing.model_construct(increment_seconds=Decimal("1e-60"), minimum_seconds=Decimal(0))
    with pytest.raises(InputError, match="fit 60 digits"):
        quote(rented(billing=step), Usage(Decimal(10**9)))
    year_of_fortune = Usage(Decimal(3 * 10**9))
    with pytest.raises(InputError, match="at most"):
        quote_at_rate(Decimal("1e29"), BILLING_RULES["prorated"], year_of_fortune)
