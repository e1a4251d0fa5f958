"""Rows compared with a catalogue, as new, unchanged, unmatched or unsound, and new specs."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from epochcost.errors import InputError, UsageError
from epochcost.specs.prices.new_specs import new_specs
from epochcost.specs.prices.tables import amount_of
from listed_prices import JANUARY, JULY, REQUEST, ROW, Project, sort


def test_same_amount_is_no_news(project: Project) -> None:
    """A later row with the stored amount, however rounded, is not new."""
    for text in ("1.25", "1.250000", "1.2500000000000002", "1.25001"):
        result = sort(project, replace(ROW, amount=text))
        assert [price.new for price in result.prices] == [False], text
    assert [price.new for price in sort(project, replace(ROW, amount="1.251")).prices] == [True]


@pytest.mark.parametrize(("day", "new"), [(1, True), (3, True), (5, False), (7, False)])
def test_price_of_an_earlier_day(project: Project, day: int, new: bool) -> None:
    """A row is compared with the price of its day, or with the first price if it is earlier."""
    project.price(day=dt.date(2026, 5, 1), amount="amount = 2")
    request = replace(REQUEST, as_of=dt.date(2026, day, 2))
    (price,) = sort(project, replace(ROW, amount="2"), request=request).prices
    assert price.new == new


def test_prices_of_others_are_not_compared(project: Project) -> None:
    """A row is compared with no price in another currency and with none of another provider."""
    project.price(day=dt.date(2026, 5, 1), amount="amount = 2", rest='currency = "EUR"')
    project.price(day=dt.date(2026, 6, 1), amount="amount = 3", provider="A reseller")
    (price,) = sort(project, ROW).prices
    assert (price.previous, price.model.currency) == (Decimal("1.25"), "USD")


def test_a_day_in_the_future(project: Project) -> None:
    """A table with a day later than today is refused."""
    with pytest.raises(UsageError, match="--as-of: expected a day in the past, got 2026-11-22"):
        sort(project, ROW, request=replace(REQUEST, as_of=dt.date(2026, 11, 22)))


def test_a_day_after_the_day_of_the_source(project: Project) -> None:
    """A table is not dated later than the latest day that its source names."""
    read = replace(REQUEST, source="a list of 2025-12-31, read on 2026-07-01 by a collector")
    assert sort(project, ROW, request=replace(read, as_of=dt.date(2026, 7, 1))).prices
    with pytest.raises(UsageError, match="--as-of: expected 2026-07-01 or earlier, the latest day"):
        sort(project, ROW, request=replace(read, as_of=dt.date(2026, 7, 2)))


def test_two_prices_of_one_day_are_refused(project: Project) -> None:
    """Two amounts for one machine, plan, region and day are refused, and both are named."""
    result = sort(project, ROW, replace(ROW, line=3, amount="1.6"), replace(ROW, line=4))
    assert result.prices == ()
    assert [str(fault) for fault in result.faults] == [
        "table.csv:3:1: box.xlarge on-demand: expected one price of box.xlarge in us-east-1, "
        "got 1.6 here and 1.5 in table.csv:2"
    ]


def test_contradiction_of_the_same_day(project: Project) -> None:
    """A row that contradicts the stored price of the same day is a fault."""
    result = sort(project, ROW, request=replace(REQUEST, as_of=JANUARY))
    assert "expected the 1.25 of box.xlarge-on-demand-2026-01" in str(result.faults[0])


@pytest.mark.parametrize(
    "text",
    ["", "0", "0.00", "-1", "NaN", "inf", "1,234.50", "$3", "1_000", "٣", "1e99", "1e-17", "free"],
)
def test_unsound_amounts(project: Project, text: str) -> None:
    """An amount that is not a plain decimal from 1e-15 to 1e15 is a fault at its place."""
    with pytest.raises(ValueError, match="expected a price per hour above 0"):
        amount_of(text)
    result = sort(project, replace(ROW, amount=text))
    assert result.prices == ()
    assert str(result.faults[0]).startswith("table.csv:2:1: box.xlarge on-demand: expected a price")


def test_names_are_matched_as_lists_write_them(project: Project) -> None:
    """A machine is found by id or sku, in Azure's spellings too."""
    project.machine("nc6s-v3", "Azure")
    project.price("nc6s-v3", provider="Azure", sku="Standard_NC6s_v3")
    azure = replace(REQUEST, provider="azure")
    for name in ("Standard_NC6s_v3", "NC6s v3", "nc6s-v3"):
        assert sort(project, replace(ROW, sku=name), request=azure).prices, name


def test_accelerators_must_agree(project: Project) -> None:
    """A row matches a machine with GPUs only if its number of GPUs is equal."""
    project.machine("gpu.xlarge", gpus=4)
    project.price("gpu.xlarge")
    for counted, found in (("4", 1), ("4.0", 1), (None, 1), ("0", 0), ("1", 0), ("many", 0)):
        result = sort(project, ROW, replace(ROW, sku="gpu.xlarge", accelerators=counted))
        assert len(result.prices) == 1 + found, counted


def test_priced_in_parts(project: Project) -> None:
    """A price with components is not imported, since one amount cannot say which part changed."""
    project.machine("parts.xlarge")
    parts = "\n[[components]]\nlabel = 'host'\namount = 1\n"
    project.price("parts.xlarge", amount="", rest=parts)
    result = sort(project, ROW, replace(ROW, sku="parts.xlarge"))
    assert "a price with components: change them by hand" in result.unmatched


def test_other_regions_only_when_asked_for(project: Project) -> None:
    """A row of a region without a price is new only if the request names the region."""
    there = replace(ROW, region="eu-west-1")
    assert "a region in which the machine has no price" in sort(project, ROW, there).unmatched
    assert sort(project, ROW, there, request=replace(REQUEST, region="eu-west-1")).prices[0].new


def test_a_commitment_needs_one_to_copy(project: Project) -> None:
    """A row of a term matches a stored price of the same term only."""
    year = replace(ROW, plan="committed-use", months=12, amount="0.8")
    assert "a machine without a rented price to copy" in sort(project, ROW, year).unmatched
    project.commitment("0.9")
    result = sort(project, year, replace(year, months=36))
    assert [(price.key.months, price.previous) for price in result.prices] == [(12, Decimal("0.9"))]


def test_table_without_regions(project: Project) -> None:
    """A table without regions needs --region if the stored prices have regions."""
    row = replace(ROW, region=None)
    with pytest.raises(InputError, match="give --region"):
        sort(project, row)
    assert sort(project, row, request=replace(REQUEST, region="us-east-1")).prices[0].new


def test_changed_price_becomes_a_spec_of_its_own(project: Project) -> None:
    """A changed amount becomes a new file with the new date, and the stored file is kept."""
    result = sort(project, ROW)
    (spec,) = new_specs(result, project.load(), REQUEST)
    assert spec.path.name == "box.xlarge-on-demand-2026-07.toml"
    assert spec.price.previous == Decimal("1.25")
    before = (project.root / "specs/prices/box.xlarge-on-demand-2026-01.toml").read_text("utf-8")
    spec.path.write_text(spec.text, "utf-8")
    catalogue = project.load()
    price = catalogue.price("box.xlarge-on-demand-2026-07")
    assert (price.amount, price.as_of, price.source) == (Decimal("1.50"), JULY, "a list")
    assert (project.root / "specs/prices/box.xlarge-on-demand-2026-01.toml").read_text() == before


def test_two_in_one_month(project: Project) -> None:
    """A second price in a month has the day in its id."""
    project.price(day=dt.date(2026, 7, 1), amount="amount = 2")
    (spec,) = new_specs(sort(project, ROW), project.load(), REQUEST)
    assert spec.path.stem == "box.xlarge-on-demand-2026-07-20"


def test_first_spot_price(project: Project) -> None:
    """A machine's first spot price is a copy of the on-demand price with the terms of spot."""
    (spec,) = new_specs(sort(project, replace(ROW, plan="spot")), project.load(), REQUEST)
    assert spec.path.stem == "box.xlarge-spot-2026-07"
    assert '\nplan = "spot"\n' in spec.text
    assert spec.spec.free_if_taken_back_seconds == 3600


def test_a_later_spot_price_keeps_the_terms_of_the_earlier(project: Project) -> None:
    """A machine's next spot price is a copy of its last, not of a newer on-demand price."""
    project.price(plan="spot", rest="[interruptions]\nrate_per_hour = 0.1")
    project.price(day=dt.date(2026, 6, 1))
    (spec,) = new_specs(sort(project, replace(ROW, plan="spot")), project.load(), REQUEST)
    assert spec.spec.interruptions is not None


def test_a_spot_price_has_no_discount_for_sustained_use(project: Project) -> None:
    """A plan's terms are not copied to another plan. Only Amazon's spot has a free hour."""
    project.machine("n1", provider="Google Compute Engine")
    project.price("n1", provider="Google Compute Engine", rest='sustained_use = "gce-n1"')
    request = replace(REQUEST, provider="gcp")
    rows = [replace(ROW, sku="n1", plan=plan) for plan in ("on-demand", "spot")]
    specs = [
        new.spec
        for row in rows
        for new in new_specs(sort(project, row, request=request), project.load(), request)
    ]
    assert [spec.sustained_use for spec in specs] == ["gce-n1", None]
    assert [spec.free_if_taken_back_seconds for spec in specs] == [0, 0]


def test_a_spec_for_a_region(project: Project) -> None:
    """A spec for a region that the request names has the region in its id."""
    request = replace(REQUEST, region="eu-west-1")
    result = sort(project, replace(ROW, region="eu-west-1"), request=request)
    (spec,) = new_specs(result, project.load(), request)
    assert spec.path.stem == "box.xlarge-on-demand-eu-west-1-2026-07"
    assert 'region = "eu-west-1"' in spec.text


def test_a_commitment_is_copied_with_its_term(project: Project) -> None:
    """A new spec of a commitment has the new amount and the old term."""
    project.commitment("0.9")
    row = replace(ROW, plan="committed-use", months=12, amount="0.8")
    (spec,) = new_specs(sort(project, row), project.load(), REQUEST)
    assert spec.path.stem == "box.xlarge-committed-use-2026-07"
    assert spec.spec.commitment is not None
    assert spec.spec.commitment.hourly == Decimal("0.8")
    assert "term_months = 12" in spec.text


def test_an_old_price_that_is_confirmed_is_dated_anew(project: Project) -> None:
    """A confirmed price older than 60 days gets the table's date and source, others do not."""
    result = sort(project, replace(ROW, amount="1.25"))
    (spec,) = new_specs(result, project.load(), REQUEST)
    assert (spec.state, spec.path.stem) == ("dated anew", "box.xlarge-on-demand-2026-01")
    assert (spec.spec.amount, spec.spec.as_of, spec.spec.source) == (
        Decimal("1.25"),
        JULY,
        "a list",
    )
    fresh = replace(REQUEST, today=dt.date(2026, 3, 1), as_of=dt.date(2026, 2, 28))
    result = sort(project, replace(ROW, amount="1.25"), request=fresh)
    assert new_specs(result, project.load(), fresh) == ()


def test_a_doubted_price_has_its_reason(project: Project) -> None:
    """A doubted price has a reason. Of two plans the one with most contradictions is doubted."""
    (spec,) = new_specs(sort(project, replace(ROW, amount="0.0125")), project.load(), REQUEST)
    assert spec.state == "doubted"
    assert spec.doubt == (
        "0.003125 an hour per vCPU is 1/100 of the 0.3125 of box.xlarge-on-demand-2026-01"
    )
    project.price(plan="spot", amount="amount = 0.5")
    rows = (replace(ROW, amount="1.3"), replace(ROW, plan="spot", amount="13"))
    specs = new_specs(sort(project, *rows), project.load(), REQUEST)
    assert [(each.price.key.plan, each.state) for each in specs] == [
        ("on-demand", "new"),
        ("spot", "doubted"),
    ]
