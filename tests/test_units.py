"""Quantities as people write and read them."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.errors import InputError
from epochcost.units import (
    either,
    memory,
    money,
    money_range,
    parse_count,
    parse_decimal,
    parse_duration_seconds,
    parse_share,
    plain,
    seconds,
    share,
    today,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("428s", "428"),
        ("428", "428"),
        (" 0.5 ", "0.5"),
        ("0.25s", "0.25"),
        ("250ms", "0.25"),
        ("90m", "5400"),
        ("2h", "7200"),
        ("1h30m", "5400"),
        ("1h 30m", "5400"),
        ("1d", "86400"),
        ("7min", "420"),
        ("7 min", "420"),
        ("2hours", "7200"),
        ("1 hour 5 minutes", "3900"),
        ("3 days", "259200"),
        ("20 milliseconds", "0.02"),
    ],
)
def test_durations(text: str, expected: str) -> None:
    """A duration is a number with a unit, or several in a row. A single number is seconds."""
    assert parse_duration_seconds(text) == Decimal(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "-428s",
        "1e3s",
        "nan",
        "infs",
        "1h30",
        "1x",
        "0s",
        "0.0h",
        "101d x",
        "40000d",
        "1h1h",
        "1h 2 hours",
        "1 0s",
        "7 mi",
        "7 months",
        "2hourss",
        "٣s",
    ],
)
def test_durations_that_are_none(text: str) -> None:
    """Unknown units, signs, exponents, empty text and more than a century are refused."""
    with pytest.raises(InputError, match=r"^duration: expected"):
        parse_duration_seconds(text)


@pytest.mark.parametrize("text", ["2.5M", "2500k", "2,500,000", " 0.0025B ", "0.0000025T"])
def test_counts(text: str) -> None:
    """A count may have a letter for thousands, millions, billions or trillions."""
    assert parse_count(text, "count") == 2_500_000


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "0.0001k", "2e27k"])
def test_counts_that_are_none(text: str) -> None:
    """A count is a whole number above 0 and at most 1e30."""
    with pytest.raises(InputError, match=r"^count: expected a whole number above 0 and at most"):
        parse_count(text, "count")


@pytest.mark.parametrize("text", ["0.3", "30%", "30 %", " 30.0% "])
def test_shares(text: str) -> None:
    """A share is a number up to one, or a percentage."""
    assert parse_share(text, "share") == Decimal("0.3")


@pytest.mark.parametrize("text", ["", "%", "30%%", "30% off", "a%", "nan%"])
def test_shares_that_are_none(text: str) -> None:
    """A text that is neither number nor percentage is refused with the option's name."""
    with pytest.raises(InputError, match=r"^share: expected"):
        parse_share(text, "share")


@pytest.mark.parametrize(
    ("part", "expected"),
    [(0, "0 %"), (0.0039, "0.4 %"), (0.0126, "1 %"), (0.6, "60 %"), (1, "100 %")],
)
def test_a_small_share_is_not_0(part: float, expected: str) -> None:
    """Percentages are whole, except those below 1."""
    assert share(part) == expected


def test_a_share_may_have_a_sign() -> None:
    """A change is written with its sign."""
    changes = (0.15, -0.0007, 0.004, -0.01)
    assert [share(each, "+") for each in changes] == ["+15 %", "-0.07 %", "+0.4 %", "-1 %"]
    assert [share(each, "+", 1) for each in changes] == ["+15.0 %", "-0.1 %", "+0.4 %", "-1.0 %"]


def test_the_callers_context_does_not_round() -> None:
    """Digits are kept even if the caller's decimal context has three."""
    with decimal.localcontext(prec=3, traps=[decimal.Inexact]):
        assert parse_duration_seconds("1h0.2501s") == Decimal("3600.2501")
        assert parse_decimal("123456.5", "rate") == Decimal("123456.5")
        assert money(Decimal("123456.5")) == "$123,456.50"


@pytest.mark.parametrize("text", ["1,5M", "1,50", "12,3456", ",500"])
def test_a_comma_is_no_decimal_point(text: str) -> None:
    """A comma that does not separate three digits is refused instead of skipped."""
    with pytest.raises(InputError, match=r"^count: expected a decimal number, got"):
        parse_count(text, "count")


@pytest.mark.parametrize("text", ["", "abc", "1,5", "nan", "sNaN", "inf", "-Infinity"])
def test_numbers_that_are_none(text: str) -> None:
    """A text that is no finite number is refused with its name."""
    with pytest.raises(InputError, match=r"^rate: expected a (decimal|finite) number, got"):
        parse_decimal(text, "rate")


@pytest.mark.parametrize("text", ["1e200", "-1e31", "9" * 400])
def test_numbers_that_are_too_large(text: str) -> None:
    """A number above 1e30 is refused before it is formatted or multiplied."""
    with pytest.raises(InputError, match=r"^budget: expected a number of at most 1e\+30, got"):
        parse_decimal(text, "budget")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_plain_digits_are_exact(value: Decimal) -> None:
    """Plain digits give the same number, without an exponent or trailing zeros."""
    text = plain(value)
    assert Decimal(text) == value
    assert "E" not in text.upper()
    assert "." not in text or text[-1] not in "0."


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("0", "$0.00"),
        ("1.675", "$1.68"),
        ("0.107", "$0.11"),
        ("0.0425", "$0.042"),
        ("0.0996", "$0.10"),
        ("0.996", "$1.00"),
        ("1234567.8", "$1,234,567.80"),
        ("-0.5", "-$0.50"),
        ("0.000012", "$0.000012"),
        ("0.00000001234", "$0.000000012"),
        ("0.0000000001234", "under $0.000000001"),
    ],
)
def test_money_for_people(amount: str, expected: str) -> None:
    """Amounts from one upward have two decimals, smaller ones two significant digits."""
    assert money(Decimal(amount)) == expected


@pytest.mark.parametrize("epoch", ["yesterday", "9" * 20])
def test_a_build_date_that_is_none(monkeypatch: pytest.MonkeyPatch, epoch: str) -> None:
    """A SOURCE_DATE_EPOCH without a date is refused with its name."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    with pytest.raises(InputError, match=r"^SOURCE_DATE_EPOCH: expected a number of seconds"):
        today()


def test_currencies_and_places() -> None:
    """Known currencies have their sign, others their code. The decimals can be set."""
    assert money(Decimal("0.5"), "EUR", 3) == "€0.500"
    assert money(Decimal("0.5"), "CHF") == "CHF 0.50"
    assert money(Decimal("1e-9"), "USD", 4) == "$0.0000"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.5e-6, "1.5 µs"),
        (0.9997e-3, "1 ms"),
        (0.0123, "12.3 ms"),
        (0.9999, "1 s"),
        (59.94, "59.9 s"),
        (428, "7.13 min"),
        (7200, "2 h"),
        (3.6e6, "41.7 days"),
        (1.8e9, "57 years"),
    ],
)
def test_times_for_people(value: float, expected: str) -> None:
    """A time has three significant digits and the unit that fits."""
    assert seconds(value) == expected


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [(512, "0 KiB"), (2048, "2 KiB"), (1.5 * 2**20, "1.5 MiB"), (31.24 * 2**30, "31.2 GiB")],
)
def test_memory_for_people(size_bytes: float, expected: str) -> None:
    """Memory is in powers of 1024, as it is sold."""
    assert memory(size_bytes) == expected


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        ("110808.20", "277019.91", "$111,000 to $277,000"),
        ("14.0453", "28.54", "$14.05 to $28.54"),
        ("99.96", "155.88", "$99.96 to $156"),
        ("0.1234", "9.999", "$0.12 to $10.00"),
        ("0.1245", "0.13451", "$0.12 to $0.13"),
    ],
)
def test_a_range_of_money_has_few_digits(low: str, high: str, shown: str) -> None:
    """The ends of a range have cents below 100, and three digits from 100 upwards."""
    assert money_range(Decimal(low), Decimal(high)) == shown


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], ""), (["A"], "A"), (["A", "B"], "A or B"), (["A", "B", "C"], "A, B or C")],
)
def test_alternatives(names: list[str], expected: str) -> None:
    """Commas separate all names but the last two."""
    assert either(names) == expected
