"""The hourly parts of a plan: what adds up to an hour, and what premiums are on."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given

from epochcost.cost import Quote, Usage, quote
from epochcost.cost.rented import HOURS_PER_BILLED_MONTH
from epochcost.errors import InputError
from price_plans import figures, plan

HOUR = Usage(Decimal(3600))
K80 = {"label": "K80", "amount": Decimal("0.70")}


def amounts(bill: Quote) -> dict[str, Decimal]:
    """The lines of a bill by their labels."""
    return {line.label: line.amount for line in bill.lines}


def test_a_host_and_its_accelerators() -> None:
    """Woolf's K80 of 2017: $0.045 for the host and $0.70 for the die; two dies cost twice."""
    one = quote(plan(amount=Decimal("0.045"), components=[K80]), HOUR)
    assert one.total == Decimal("0.745")
    host, dies = quote(
        plan(amount=Decimal("0.045"), components=[{**K80, "count": Decimal(2)}]), HOUR
    ).lines
    assert (dies.quantity, dies.unit, dies.rate) == (2, "unit-hour", Decimal("0.70"))
    assert host.amount + dies.amount == Decimal("1.445")


def test_a_premium_on_one_part() -> None:
    """Woolf's Skylake: 6.07 % on $0.06 makes $0.063642, and nothing on the GPU beside it."""
    skylake = {"label": "Skylake", "percent": Decimal("6.07"), "of": ["compute"]}
    bill = quote(plan(amount=Decimal("0.06"), components=[skylake, K80]), HOUR)
    assert amounts(bill) == {
        "compute, used": Decimal("0.06"),
        "K80": Decimal("0.70"),
        "Skylake, 6.07 %": Decimal("0.003642"),
    }


def test_a_premium_on_all_parts_is_on_no_premium() -> None:
    """Two premiums without a choice are both on the amounts alone, in any order."""
    premiums = [{"label": name, "percent": Decimal(10)} for name in ("one", "two")]
    bill = quote(plan(amount=Decimal("0.30"), components=[premiums[0], K80, premiums[1]]), HOUR)
    assert amounts(bill)["one, 10 %"] == amounts(bill)["two, 10 %"] == Decimal("0.1")


def test_components_alone_are_a_price() -> None:
    """Google's training units of 2017: ten at $0.49 for two hours."""
    units = {"label": "training units", "amount": Decimal("0.49"), "count": Decimal(10)}
    bill = quote(plan(plan="managed", components=[units]), Usage(Decimal(7200)))
    assert bill.total == Decimal("9.80")
    assert bill.lines[0].quantity == 20


@pytest.mark.parametrize(
    ("terms", "labels", "hour"),
    [
        (("no-upfront", 0, "0.5"), ["commitment"], "0.5"),
        (("partial-upfront", 8760, "0.5"), ["upfront, by the hour", "commitment"], "1.5"),
        (("all-upfront", 8760, "0"), ["upfront, by the hour"], "1"),
    ],
)
def test_ways_to_pay_for_a_year(terms: tuple[str, int, str], labels: list[str], hour: str) -> None:
    """A year has 8760 hours; what is paid at once is spread over them."""
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
    """Used hours over all hours of the term, times the bill of an hour, is the commitment."""
    terms = {"term_months": Decimal(1), "payment": "no-upfront", "hourly": Decimal(3)}
    paid = {**terms, "utilisation": utilisation}
    price = plan(plan="savings-plan", commitment=paid, billing="prorated")
    month = quote(price, Usage(HOURS_PER_BILLED_MONTH * utilisation * 3600)).total
    assert abs(month - 3 * HOURS_PER_BILLED_MONTH) <= Decimal("1e-12")


def test_a_part_too_small_to_keep_is_not_free() -> None:
    """An upfront payment that no decimal shows by the hour is refused."""
    terms = {"term_months": Decimal(10**15), "payment": "all-upfront", "upfront": Decimal("1e-9")}
    with pytest.raises(InputError, match=r"^rate: demanded an amount above 0"):
        quote(plan(plan="committed-use", commitment=terms), HOUR)
