"""Amounts in other currencies: which rate is taken, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given

from epochcost.cost import Candidate, Estimate, cheapest
from epochcost.cost.currency import conversion
from epochcost.errors import InputError
from epochcost.specs.reference_data import ExchangeRate
from price_plans import figures

DAY = dt.date(2026, 6, 15)


def rate(base: str, quote: str, value: str, day: str, *, assumed: bool = False) -> ExchangeRate:
    """A rate of a day, named by all of it."""
    return ExchangeRate(
        id=f"{base}-{quote}-{day}".lower(),
        base=base,
        quote=quote,
        rate=Decimal(value),
        assumed=assumed,
        source="a test",
        as_of=dt.date.fromisoformat(day),
    )


RATES = (
    rate("USD", "EUR", "0.8", "2026-01-01"),
    rate("USD", "EUR", "0.9", "2026-06-01"),
    rate("USD", "EUR", "0.5", "2026-07-01"),
    rate("USD", "JPY", "160", "2026-06-01"),
)


def test_the_newest_rate_on_or_before_the_day() -> None:
    """A later one is not yet known, an earlier one no longer holds, and the words say which."""
    found = conversion("USD", "EUR", RATES, DAY)
    assert found.amount(Decimal(10)) == 9
    assert found.words == "1 USD = 0.9 EUR on 2026-06-01 (usd-eur-2026-06-01)"
    assert conversion("USD", "EUR", RATES, dt.date(2026, 7, 1)).amount(Decimal(10)) == 5


def test_a_rate_serves_both_ways() -> None:
    """Of euros the dollars are had by division; of one day's rates the direct one is taken."""
    found = conversion("EUR", "USD", RATES, DAY)
    assert found.inverse
    assert found.amount(Decimal(9)) == 10
    direct = rate("EUR", "USD", "1.2", "2026-06-01")
    assert conversion("EUR", "USD", (*RATES, direct), DAY).amount(Decimal(10)) == 12


def test_two_rates_in_a_row_are_no_rate() -> None:
    """Euros do not become yen by way of dollars."""
    with pytest.raises(InputError, match=r"rate between EUR and JPY .* found none: add one to"):
        conversion("EUR", "JPY", RATES, DAY)


def test_no_rate_before_the_day() -> None:
    """The message says from when on there is one."""
    with pytest.raises(InputError, match=r"on or before 2016-11-01; the oldest is of 2026-01-01$"):
        conversion("USD", "EUR", RATES, dt.date(2016, 11, 1))


@pytest.mark.parametrize("code", ["XYZ", "usd", "", "EURO"])
def test_unknown_currencies(code: str) -> None:
    """Only the codes of ISO 4217 name a currency."""
    with pytest.raises(InputError, match=r"^currency: expected a code of ISO 4217"):
        conversion("USD", code, RATES, DAY)


def test_one_currency_needs_no_rate() -> None:
    """Nothing is converted, and the words say so."""
    found = conversion("USD", "USD", (), DAY)
    assert found.amount(Decimal("1.5")) == Decimal("1.5")
    assert found.words == "no conversion: amounts are in USD"


@given(figures("0.0001", "1000"), figures("0", "1000000"))
def test_there_and_back(value: Decimal, amount: Decimal) -> None:
    """By one rate an amount comes back as it was, to 12 decimals."""
    rates = (rate("USD", "EUR", str(value), "2026-06-01"),)
    there = conversion("USD", "EUR", rates, DAY).amount(amount)
    back = conversion("EUR", "USD", rates, DAY).amount(there)
    assert abs(back - amount) <= Decimal("1e-12")


def test_mixed_currencies_become_comparable() -> None:
    """Refused as they are, compared once both are dollars; an assumed rate marks the cost."""
    rates = (rate("USD", "EUR", "0.5", "2026-06-01", assumed=True),)
    costs = [
        Estimate(Decimal(1), Decimal(1), Decimal(1), "EUR", "a", assumed=False),
        Estimate(Decimal("1.5"), Decimal("1.5"), Decimal("1.5"), "USD", "b", assumed=False),
    ]
    with pytest.raises(InputError, match="costs in one currency, got EUR, USD"):
        cheapest([Candidate(cost.price_id, Decimal(1), cost) for cost in costs])
    converted = [conversion(one.currency, "USD", rates, DAY).estimate(one) for one in costs]
    best = cheapest([Candidate(cost.price_id, Decimal(1), cost) for cost in converted])
    assert best is not None
    assert (best.key, best.cost.mean) == ("b", Decimal("1.5"))
    assert [cost.assumed for cost in converted] == [True, False]


def test_an_estimate_of_another_currency_is_refused() -> None:
    """A conversion from dollars takes no euros."""
    cost = Estimate(Decimal(1), Decimal(1), Decimal(1), "EUR", "a", assumed=False)
    with pytest.raises(InputError, match="expected a cost in USD, got one in EUR"):
        conversion("USD", "EUR", RATES, DAY).estimate(cost)
