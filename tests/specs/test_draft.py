"""A price spec made from an earlier one: what stays, what is replaced, what is removed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
import tomli

from epochcost.specs.draft import successor, typed
from epochcost.specs.schema import schema_of

EARLIER = """\
# The machine of the first study.
id = "box-on-demand-2026-01"
plan = "on-demand" # paid by the hour

amount = 1.25 # 1.00 and a quarter for the host
per = "hour"
billing = "per-second" # at least 60 s

source = "the list of January"
as_of = 2026-01-31
valid_until = 2026-03-31
notes = "Without taxes."
unconfirmed = ["as_of", "billing"]
"""
CHANGED = {
    "id": "box-on-demand-2026-04",
    "plan": "on-demand",
    "amount": Decimal("1.5"),
    "source": "the list of April",
    "as_of": dt.date(2026, 4, 1),
}


def test_comments_and_order_stay() -> None:
    """Only replaced values, their comments and remarks about them change."""
    assert successor(EARLIER, CHANGED) == (
        EARLIER.replace("2026-01", "2026-04", 1)
        .replace("1.25 # 1.00 and a quarter for the host", "1.50")
        .replace("January", "April")
        .replace("2026-01-31\nvalid_until = 2026-03-31", "2026-04-01")
        .replace('["as_of", "billing"]', '["billing"]')
    )


@pytest.mark.parametrize(
    ("amount", "written"),
    [("0.5", "0.50"), ("21.957642", "21.957642"), ("3", "3.00"), ("1E-3", "0.001")],
)
def test_amounts_as_price_lists_print_them(amount: str, written: str) -> None:
    """An amount is written with at least two decimals, all its digits and no exponent."""
    text = successor(EARLIER, {"amount": Decimal(amount)})
    assert f"\namount = {written}\n" in text


def test_a_key_is_added_or_removed() -> None:
    """A new key is written before the tables. A removed key need not exist."""
    text = successor(EARLIER, {"notes": None, "sustained_use": "gce-n1", "credit": None})
    assert tomli.loads(text)["sustained_use"] == "gce-n1"
    assert "notes" not in tomli.loads(text)


def test_only_a_share_may_be_in_percent() -> None:
    """A utilisation of 50 % is 0.5, but a price of 50 % is none."""
    owned = schema_of("prices")["properties"]["owned"]["properties"]
    assert typed("50%", owned["utilisation"]) == Decimal("0.5")
    assert typed("50%", schema_of("prices")["properties"]["amount"]) == "50%"
