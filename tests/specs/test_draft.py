"""A price spec made from an earlier one: what stays, what is replaced, what is removed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
import tomli

from epochcost.specs.draft import draft_spec, successor, typed
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


def test_a_changed_key_of_a_table_is_confirmed() -> None:
    """A changed key of a table leaves the copy's ``unconfirmed``, its neighbours stay."""
    earlier = EARLIER.replace('["as_of"', '["commitment.hourly", "commitment.term_months", "as_of"')
    text = successor(
        f"{earlier}\n# a year\n[commitment]\nterm_months = 12\nhourly = 1.2\n",
        {"commitment.hourly": Decimal("1.1"), "as_of": dt.date(2026, 4, 1)},
    )
    assert '\nunconfirmed = ["commitment.term_months", "billing"]\n\n# a year\n' in text


def test_names_of_dimensions_are_quoted() -> None:
    """A key that TOML allows only in quotes, such as a dimension's name, is written in quotes."""
    sizes = {"image[2]": 224, "past + 1": 9, "a.b": 3, "sequence": 128}
    texts = dict.fromkeys(("name", "task", "example", "source"), "made up")
    graph = {"graph": "m.onnx", "inputs": [{"name": "image"}], "dimensions": sizes}
    assert tomli.loads(draft_spec("models", {"id": "m", **texts, **graph}))["dimensions"] == sizes


def test_only_a_share_may_be_in_percent() -> None:
    """A utilisation of 50 % is 0.5, but a price of 50 % is none."""
    owned = schema_of("prices")["properties"]["owned"]["properties"]
    assert typed("50%", owned["utilisation"]) == Decimal("0.5")
    assert typed("50%", schema_of("prices")["properties"]["amount"]) == "50%"
