"""How used seconds become billed seconds, and which part of a bill was not used."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from epochcost.cost.bill import quote, quote_at_rate
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.spot import round_up
from epochcost.errors import InputError
from epochcost.specs.terms import BILLING_RULES
from epochcost.units import HOURS_PER_BILLED_MONTH
from price_plans import durations, figures, plan, rates


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
    """Each named rule is right at, below and above its step and its minimum."""
    assert round_up(Decimal(used), BILLING_RULES[rule]) == Decimal(billed)


@given(durations, rates)
def test_coarser_billing_costs_more(used: Decimal, rate: Decimal) -> None:
    """Whole hours cost at least as much as whole seconds, and these as the exact time."""
    hours, seconds, share = (
        quote_at_rate(rate, BILLING_RULES[rule], Usage(used)).total
        for rule in ("whole-hour", "per-second", "prorated")
    )
    assert hours >= seconds >= share


def test_the_unused_part_stands_apart() -> None:
    """A job of 428 s has lines for the used and the unused part of the billed hour."""
    bill = quote_at_rate(Decimal("0.90"), BILLING_RULES["whole-hour"], Usage(Decimal(428)))
    assert [line.label for line in bill.lines] == ["compute, used", "compute, billed but unused"]
    assert [line.amount for line in bill.lines] == [Decimal("0.107"), Decimal("0.793")]
    assert sum(line.quantity for line in bill.lines) == 1
    assert bill.total == Decimal("0.90")


def bill_with(usage: Usage, **component: Any) -> Quote:
    """The bill at $1 an hour with a start of 600 s and one component."""
    start = {"seconds": Decimal(600), "billed": False}
    return quote(plan(amount=Decimal(1), start=start, components=[component]), usage)


def test_storage_is_kept_for_the_time_on_the_wall() -> None:
    """730 GB for an hour, a start of 600 s and 3000 s of work, are one GB-month."""
    disk = {"label": "disk", "amount": Decimal("0.04"), "count": Decimal(730), "per": "gb-month"}
    line = bill_with(Usage(Decimal(3000)), **disk).lines[-1]
    assert (line.quantity, line.unit, line.amount) == (1, "GB-month", Decimal("0.04"))


def test_egress_is_what_the_usage_moves_in_all() -> None:
    """Egress is of the whole usage, for all machines and runs. Without egress there is no line."""
    egress = {"label": "egress", "amount": Decimal("0.09"), "per": "gb"}
    moving = bill_with(Usage(Decimal(3600), 2, runs=3, egress_gb=Decimal(5)), **egress)
    assert (moving.lines[-1].unit, moving.lines[-1].amount) == ("GB", Decimal("0.45"))
    assert len(bill_with(Usage(Decimal(3600)), **egress).lines) == 1


def test_a_run_is_charged_once_on_all_machines() -> None:
    """A charge per run counts three runs on two machines as three."""
    job = {"label": "job", "amount": Decimal("0.50"), "per": "run"}
    line = bill_with(Usage(Decimal(3600), 2, runs=3), **job).lines[-1]
    assert (line.quantity, line.amount) == (3, Decimal("1.50"))


HOUR = Usage(Decimal(3600))
K80 = {"label": "K80", "amount": Decimal("0.70")}


def amounts(bill: Quote) -> dict[str, Decimal]:
    """The amounts of a bill's lines by label."""
    return {line.label: line.amount for line in bill.lines}


def test_a_host_and_its_accelerators() -> None:
    """Woolf's K80 of 2017: $0.045 for the host and $0.70 for each die."""
    one = quote(plan(amount=Decimal("0.045"), components=[K80]), HOUR)
    assert one.total == Decimal("0.745")
    host, dies = quote(
        plan(amount=Decimal("0.045"), components=[{**K80, "count": Decimal(2)}]), HOUR
    ).lines
    assert (dies.quantity, dies.unit, dies.rate) == (2, "unit-hour", Decimal("0.70"))
    assert host.amount + dies.amount == Decimal("1.445")


def test_a_premium_on_one_part() -> None:
    """Woolf's Skylake premium of 6.07 % is on the host's $0.06 and not on the GPU's price."""
    skylake = {"label": "Skylake", "percent": Decimal("6.07"), "of": ["compute"]}
    bill = quote(plan(amount=Decimal("0.06"), components=[skylake, K80]), HOUR)
    assert amounts(bill) == {
        "compute, used": Decimal("0.06"),
        "K80": Decimal("0.70"),
        "Skylake, 6.07 %": Decimal("0.003642"),
    }


@pytest.mark.parametrize(
    ("terms", "labels", "hour"),
    [
        (("no-upfront", 0, "0.5"), ["commitment"], "0.5"),
        (("partial-upfront", 8760, "0.5"), ["upfront, by the hour", "commitment"], "1.5"),
        (("all-upfront", 8760, "0"), ["upfront, by the hour"], "1"),
    ],
)
def test_ways_to_pay_for_a_year(terms: tuple[str, int, str], labels: list[str], hour: str) -> None:
    """An upfront payment is spread over the 8760 hours of a year."""
    payment, upfront, hourly = terms
    paid = {"payment": payment, "upfront": Decimal(upfront), "hourly": Decimal(hourly)}
    year = {**paid, "term_months": Decimal(12)}
    bill = quote(plan(plan="reserved", commitment=year), HOUR)
    assert [line.label for line in bill.lines] == labels
    assert bill.total == Decimal(hour)
    half = quote(plan(plan="reserved", commitment={**year, "utilisation": Decimal("0.5")}), HOUR)
    assert half.lines[-1].label == "commitment, idle hours"
    assert half.lines[-1].amount == Decimal(hour)


@given(figures("0.01", "1"))
def test_an_hour_of_use_carries_the_idle_ones(utilisation: Decimal) -> None:
    """The bill of the used hours of a term equals the commitment for all its hours."""
    terms = {"term_months": Decimal(1), "payment": "no-upfront", "hourly": Decimal(3)}
    paid = {**terms, "utilisation": utilisation}
    price = plan(plan="savings-plan", commitment=paid, billing="prorated")
    month = quote(price, Usage(HOURS_PER_BILLED_MONTH * utilisation * 3600)).total
    assert abs(month - 3 * HOURS_PER_BILLED_MONTH) <= Decimal("1e-12")


def test_a_commitment_for_four_machines() -> None:
    """A commitment for four machines is paid for one as for four. Two more cost the list price."""
    terms = {"term_months": 12, "payment": "no-upfront", "hourly": 1}
    four = {**terms, "machines": 4, "on_demand_hourly": 2}
    price = plan(plan="savings-plan", commitment=four)
    unused, above = "commitment, unused machines", "on demand, above the commitment"
    one, all_four, six = (quote(price, Usage(Decimal(3600), count)) for count in (1, 4, 6))
    assert amounts(one) == {"commitment": 1, unused: 3}
    assert amounts(all_four) == {"commitment": 4}
    assert amounts(six) == {"commitment": 4, above: 4}


def test_a_part_too_small_to_keep_is_not_free() -> None:
    """An upfront payment whose amount per hour rounds to zero is refused."""
    terms = {"term_months": Decimal(10**15), "payment": "all-upfront", "upfront": Decimal("1e-9")}
    with pytest.raises(InputError, match=r"^rate: expected an amount above 0"):
        quote(plan(plan="committed-use", commitment=terms), HOUR)
