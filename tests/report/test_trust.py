"""The page on errors of predictions: the stored errors, or how to compute them."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.prediction_trust import Trust, read_trust
from epochcost.report.pages.page import Report
from epochcost.report.site import Site, build
from report_project import REPOSITORY, cells


@pytest.fixture(scope="module", name="trust")
def trust_fixture() -> Trust:
    """The committed errors of predictions."""
    trust = read_trust(REPOSITORY / "docs")
    assert trust is not None
    return trust


@pytest.fixture(scope="module", name="site")
def site_fixture(inputs: Inputs) -> Site:
    """The site of the project with these errors."""
    return build(replace(inputs, docs=REPOSITORY / "docs"), REPOSITORY / "site_templates")


def test_the_page_shows_what_the_file_holds(site: Site, trust: Trust) -> None:
    """The page has a row for each group of errors, and the headline in its first sentence."""
    page = site.pages["predictions.md"]
    rows = {row[0]: row for line in page.splitlines() if (row := cells(unescape(line)))}
    for groups in trust.groups.values():
        for group in groups:
            assert f"{group.errors.rows:,}" in rows[group.name][1]
    every = trust.all["accelerator"]
    assert f"half of {every.rows:,} predictions were within" in page
    assert f"{1 + every.median_percent / 100:.2f} of the truth" in page
    assert "a test withholds each source as a whole" in page


def test_without_figures_the_page_says_how_to_get_them(inputs: Inputs) -> None:
    """Without the file of errors, the page shows no table and names the command."""
    assert Report(inputs).trust is None
    page = build(inputs, REPOSITORY / "site_templates").pages["predictions.md"]
    assert "epochcost trust" in page
    assert "<table" not in page
