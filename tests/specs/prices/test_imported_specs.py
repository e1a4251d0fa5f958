"""Specs of imported prices: new ones, old ones that are confirmed, and doubted ones."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from epochcost.errors import UsageError
from epochcost.specs.prices.imported_specs import new_specs
from listed_prices import JULY, REQUEST, ROW, Project, sort


def test_changed_price_becomes_a_spec_of_its_own(project: Project) -> None:
    """Another amount is a new file with the new date; the known price stays as it is."""
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
    """A second price of a month has the day in its id."""
    rows = [replace(ROW, as_of=dt.date(2026, 7, day), amount=str(day)) for day in (1, 20)]
    names = [spec.path.stem for spec in new_specs(sort(project, *rows), project.load(), REQUEST)]
    assert names == ["box.xlarge-on-demand-2026-07", "box.xlarge-on-demand-2026-07-20"]


def test_first_spot_price(project: Project) -> None:
    """A machine's first spot price is written after its on-demand price."""
    (spec,) = new_specs(sort(project, replace(ROW, plan="spot")), project.load(), REQUEST)
    assert spec.path.stem == "box.xlarge-spot-2026-07"
    assert '\nplan = "spot"\n' in spec.text
    assert spec.spec.free_if_taken_back_seconds == 3600


def test_a_spot_price_has_no_discount_for_sustained_use(project: Project) -> None:
    """Terms of one plan are not copied to another; the first hour is free at Amazon only."""
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
    """A region that the request names gets a spec with its name in the id."""
    request = replace(REQUEST, region="eu-west-1")
    result = sort(project, replace(ROW, region="eu-west-1"), request=request)
    (spec,) = new_specs(result, project.load(), request)
    assert spec.path.stem == "box.xlarge-on-demand-eu-west-1-2026-07"
    assert 'region = "eu-west-1"' in spec.text


def test_a_commitment_is_copied_with_its_term(project: Project) -> None:
    """The amount of the new spec is that of its commitment."""
    project.commitment("0.9")
    row = replace(ROW, plan="committed-use", months=12, amount="0.8")
    (spec,) = new_specs(sort(project, row), project.load(), REQUEST)
    assert spec.path.stem == "box.xlarge-committed-use-2026-07"
    assert spec.spec.commitment is not None
    assert spec.spec.commitment.hourly == Decimal("0.8")
    assert "term_months = 12" in spec.text


def test_an_old_price_that_is_confirmed_is_dated_anew(project: Project) -> None:
    """Its file gets the table's date and source; a price of the last 60 days stays as it is."""
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
    """A hundredth; and of a row, the plan that contradicts the most."""
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


@pytest.mark.parametrize("missing", ["provider", "as_of", "source"])
def test_what_nobody_says(project: Project, missing: str) -> None:
    """Provider, day and source are required where neither table nor options give them."""
    changed: dict[str, None] = {missing: None}
    request = replace(REQUEST, **changed)  # type: ignore[arg-type]
    option = missing.replace("_", "-")
    with pytest.raises(UsageError, match=rf"--{option}( DATE)? is required"):
        new_specs(sort(project, ROW, request=request), project.load(), request)
