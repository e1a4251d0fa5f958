"""Pages of sources: published figures and our own, with reasons for differences."""

from __future__ import annotations

import html
import re

import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.report.pages.page import Report
from epochcost.report.pages.sources import pages
from epochcost.report.site import Site
from report_project import cells


@pytest.fixture(name="paper")
def paper_fixture(site: Site) -> str:
    """The page of two tables of one source."""
    return site.pages["sources/kroutikov-2016.md"]


def row(page: str, start: str) -> list[str]:
    """The cells of the first row whose first cell starts with ``start``."""
    rows = (cells(line) for line in page.splitlines() if line.startswith("<tr><td"))
    return next(row for row in rows if row[0].startswith(start))


def test_ours_stands_under_theirs(paper: str) -> None:
    """Each cell has the published figure, our figure and how well they agree."""
    row = next(line for line in paper.splitlines() if "<strong>11</strong>" in line)
    figures = [re.sub("<[^>]*>", " ", cell).split() for cell in cells(row)[2:5]]
    assert [figure[0] for figure in figures] == ["11", "2.98", "0.90"]
    assert [figure[1] for figure in figures] == ["10.7", "2.9722", "0.9"]
    assert ["rounded" in " ".join(figure) for figure in figures] == [False, True, False]
    assert "ec-within-rounding" in row
    assert "≈ matches" in html.unescape(row)


def test_the_reason_of_a_difference_is_given(paper: str) -> None:
    """The reason of a difference is listed once, with both figures."""
    (line,) = [line for line in paper.splitlines() if "428 s is rounded" in line]
    assert line.startswith("- ")
    assert "25 epochs take 2.98 (ours 2.9722)" in line


def test_figures_are_counted_by_how_the_source_shows_them(paper: str) -> None:
    """Agreement is counted separately for printed figures and for figures derived from them."""
    assert row(paper, "values printed as digits")[1:] == ["7", "2", "1", "1", "3"]
    assert row(paper, "values that follow from printed and drawn ones")[1:] == [
        "1",
        "1",
        "0",
        "0",
        "0",
    ]


def test_a_source_has_one_line_and_one_page(site: Site, inputs: Inputs) -> None:
    """Two tables of a source share a page and a row of the list of sources."""
    index = site.pages["sources/index.md"]
    assert index.count('"site:sources/kroutikov-2016.md"') == 1
    assert row(index, '<a href="site:sources/kroutikov-2016.md">A paper</a>')[-5:] == [
        "7",
        "2",
        "1",
        "1",
        "3",
    ]
    uris = [page.uri for page in pages(Report(inputs))]
    assert uris == ["sources/index.md", "sources/kroutikov-2016.md", "sources/paper-net.md"]


def test_remarks_name_their_plan_and_their_model(paper: str) -> None:
    """The page has the remarks of source and spec, the model's page and the price's date."""
    (line,) = [line for line in paper.splitlines() if "The box has 12 CPUs" in line]
    assert "It has 8" in line
    assert "site:models/net.md" in line
    assert "2016-11-01" in line
