"""Rows beside a catalogue: new, unchanged, unmatched or unsound, and the specs that come of it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from epochcost.errors import InputError
from epochcost.specs.prices.importing import amount_of
from listed_prices import JANUARY, REQUEST, ROW, Project, sort


def test_same_amount_is_no_news(project: Project) -> None:
    """A later row with the stored amount is not new, whatever its rounding."""
    for text in ("1.25", "1.250000", "1.2500000000000002", "1.25001"):
        result = sort(project, replace(ROW, amount=text))
        assert [price.new for price in result.prices] == [False], text
    assert [price.new for price in sort(project, replace(ROW, amount="1.251")).prices] == [True]


def test_price_of_an_earlier_day(project: Project) -> None:
    """A row is compared with what was known for its own day: history fills in, steps only."""
    days = [dt.date(2025, month, 1) for month in (1, 2, 3, 6)]
    rows = [
        replace(ROW, as_of=day, amount=amount, line=line)
        for line, (day, amount) in enumerate(zip(days, ("2", "2", "1.25", "1.25"), strict=True))
    ]
    result = sort(project, *rows)
    assert [found.new for found in result.prices] == [True, False, True, False]


def test_two_prices_of_one_day_are_refused(project: Project) -> None:
    """Two amounts for the same machine, plan, region and day are refused, and both are named."""
    result = sort(project, ROW, replace(ROW, line=3, amount="1.6"), replace(ROW, line=4))
    assert result.prices == ()
    assert [str(fault) for fault in result.faults] == [
        "table.csv:3:1: box.xlarge on-demand: expected one price of box.xlarge in us-east-1 on "
        "2026-07-20, got 1.6 here and 1.5 in table.csv:2"
    ]


def test_zones_that_differ(project: Project) -> None:
    """Spot prices that differ by zone are ambiguous until a zone is chosen."""
    project.price(plan="spot", amount="amount = 0.5")
    rows = [
        replace(ROW, plan="spot", zone=f"us-east-1{zone}", amount=amount)
        for zone, amount in (("a", "0.4"), ("b", "0.6"))
    ]
    assert "choose one with --zone" in str(sort(project, *rows).faults[0])
    chosen = sort(project, *rows, request=replace(REQUEST, zone="us-east-1b"))
    assert [found.amount for found in chosen.prices] == [Decimal("0.6")]
    assert chosen.faults == ()


def test_contradiction_of_the_same_day(project: Project) -> None:
    """A list that contradicts the catalogue about one day is a fault, never an overwriting."""
    result = sort(project, replace(ROW, as_of=JANUARY))
    assert "expected the 1.25 of box.xlarge-on-demand-2026-01" in str(result.faults[0])


@pytest.mark.parametrize(
    "text", ["", "0", "0.00", "-1", "NaN", "inf", "1,234.50", "$3", "1_000", "٣", "1e99", "free"]
)
def test_unsound_amounts(project: Project, text: str) -> None:
    """An amount that is no plain decimal above zero is a fault with its place."""
    with pytest.raises(ValueError, match="expected a price per hour above 0"):
        amount_of(text)
    result = sort(project, replace(ROW, amount=text))
    assert result.prices == ()
    assert str(result.faults[0]).startswith("table.csv:2:1: box.xlarge on-demand: expected a price")


def test_names_are_matched_as_lists_write_them(project: Project) -> None:
    """A machine is found by its id or a price's sku, with or without Azure's prefix and signs."""
    project.machine("nc6s-v3", "Azure")
    project.price("nc6s-v3", provider="Azure", sku="Standard_NC6s_v3")
    azure = replace(REQUEST, provider="azure")
    for name in ("Standard_NC6s_v3", "NC6s v3", "nc6s-v3"):
        assert sort(project, replace(ROW, sku=name), request=azure).prices, name


def test_accelerators_must_agree(project: Project) -> None:
    """A host's price is not taken for the price of the host with its GPUs."""
    project.machine("gpu.xlarge", gpus=4)
    project.price("gpu.xlarge")
    for counted, found in (("4", 1), ("4.0", 1), (None, 1), ("0", 0), ("1", 0), ("many", 0)):
        result = sort(project, ROW, replace(ROW, sku="gpu.xlarge", accelerators=counted))
        assert len(result.prices) == 1 + found, counted


def test_priced_in_parts(project: Project) -> None:
    """A price of components is changed by hand: one amount cannot say which part changed."""
    project.machine("parts.xlarge")
    parts = "\n[[components]]\nlabel = 'host'\namount = 1\n"
    project.price("parts.xlarge", amount="", rest=parts)
    result = sort(project, ROW, replace(ROW, sku="parts.xlarge"))
    assert "a price with components: change them by hand" in result.unmatched


def test_other_regions_only_when_asked_for(project: Project) -> None:
    """A region without a price is left alone unless the request names it."""
    there = replace(ROW, region="eu-west-1")
    assert "a region in which the machine has no price" in sort(project, ROW, there).unmatched
    assert sort(project, ROW, there, request=replace(REQUEST, region="eu-west-1")).prices[0].new


def test_a_commitment_needs_one_to_copy(project: Project) -> None:
    """A row of a year matches the price of a year, and no other plan."""
    year = replace(ROW, plan="committed-use", months=12, amount="0.8")
    assert "a machine without a rented price to copy" in sort(project, ROW, year).unmatched
    project.commitment("0.9")
    result = sort(project, year, replace(year, months=36))
    assert [(price.key.months, price.previous) for price in result.prices] == [(12, Decimal("0.9"))]


def test_table_without_regions(project: Project) -> None:
    """If prices have regions and the table has none, --region names the table's region."""
    row = replace(ROW, region=None)
    with pytest.raises(InputError, match="give --region"):
        sort(project, row)
    assert sort(project, row, request=replace(REQUEST, region="us-east-1")).prices[0].new
