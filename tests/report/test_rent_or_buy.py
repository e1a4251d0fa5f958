"""The page "Rent or buy": answers, and the break-even point in the chart and its data."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.report.escape import one_line
from epochcost.report.pages import rent_or_buy
from epochcost.report.pages.page import Page, Report
from epochcost.report.templates import environment, render
from report_project import REPOSITORY, inputs_of, write_project
from report_specs import HOSTILE

GPU = 'accelerators = [{ name = "Some GPU", memory_gib = 12 }]\n'
SPECS = {
    "hardware/desk": f"name = '''{HOSTILE}'''\nprovider = 'me'\nsource = 'a test'\n{GPU}",
    "hardware/twin": f"name = 'Twin (Some GPU)'\nprovider = 'Cloud'\nsource = 'a test'\n{GPU}",
    "prices/twin-dear": "hardware = 'twin'\nplan = 'on-demand'\nprovider = 'Cloud'\namount = 2.2\n"
    "source = 'a test'\nas_of = 2026-07-01\n",
    # 100 dollars a month if unused, 20 cents of energy an hour.
    "prices/mine": f"hardware = 'desk'\nplan = 'owned'\nprovider = 'me'\nassumed = true\n"
    f"source = 'a test'\nas_of = 2026-07-01\nnotes = '''{HOSTILE}'''\n[owned]\npurchase = 1200\n"
    "years = 1\nutilisation = 0.5\npower_watts = 1000\nelectricity_per_kwh = 0.2\n",
}


@pytest.fixture(scope="module", name="page")
def page_fixture(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a project with a bought machine and two rented ones of its kind."""
    return _page(tmp_path_factory.mktemp("bought"), SPECS)


def _page(folder: Path, specs: Mapping[str, str]) -> Page:
    project = write_project(folder)
    for name, text in specs.items():
        path = project / f"specs/{name}.toml"
        path.write_text(f'id = "{path.stem}"\n{text}')
    (page,) = rent_or_buy.pages(Report(inputs_of(project)))
    return page


def _text(page: Page) -> str:
    return render(environment(REPOSITORY / "site_templates"), page)


def test_every_rented_machine_of_the_kind_has_an_answer(page: Page) -> None:
    """Buying is cheaper above 167 and above 50 hours a month; a superseded price is left out."""
    text = _text(page)
    assert text.count("above 167 hours a month") == 3  # as the answer, in the table and the chart
    assert text.count("above 50 hours a month") == 1
    assert text.index("Buying is cheaper **above 167 hours a month**") < text.index("up front")
    assert "2016-11-01" not in text
    assert "epochcost break-even --own mine" in text


def test_the_crossing_is_in_the_chart_and_in_its_data(page: Page) -> None:
    """At 50 hours a month, buying and renting both cost 110 dollars; equal names have ids."""
    figure = page.figures["mine"]
    assert figure is not None
    kinds = {point.price_plan: point.machine for point in figure.data.rows}
    assert list(kinds.values()) == ["bought", "rented", "rented"]
    row = ("Twin, on-demand", "rented", "break-even", Decimal("50.0"), Decimal(110))
    assert row in figure.data.table.rows
    name = one_line(HOSTILE)
    assert figure.title.startswith(f"{name} (desk) costs less than {name} (box), ")


def test_commitments_of_one_machine_have_lines_of_their_own(tmp_path: Path) -> None:
    """Two terms of a machine in one region are told apart by the months."""
    terms = {
        f"prices/twin-{months}": "hardware = 'twin'\nplan = 'committed-use'\nprovider = 'Cloud'\n"
        "region = 'here'\nsource = 'a test'\nas_of = 2026-07-01\n[commitment]\n"
        f"term_months = {months}\npayment = 'no-upfront'\nhourly = {hourly}\n"
        for months, hourly in ((12, 5), (36, 4))
    }
    figure = _page(tmp_path, {**SPECS, **terms}).figures["mine"]
    assert figure is not None
    lines = dict.fromkeys(point.price_plan for point in figure.data.rows)
    assert [line for line in lines if "committed" in line] == [
        f"Twin (Some GPU), committed-use, {months} months, here" for months in (36, 12)
    ]


def test_a_superseded_purchase_is_left_out(tmp_path: Path) -> None:
    """Of two prices of a bought machine, only the newer one is compared."""
    earlier = SPECS["prices/mine"].replace("as_of = 2026", "as_of = 2025")
    page = _page(tmp_path, {**SPECS, "prices/mine-2025": earlier})
    assert list(page.figures) == ["mine"]
    assert "mine-2025" not in _text(page)
