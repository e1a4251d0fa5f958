"""What others may show: badges, cards, charts as files and in a frame."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.report.cards import (
    HEIGHT,
    WIDTH,
    Card,
    Headline,
    badge_svg,
    badges_of,
    card_svg,
    headline,
    text_width,
    wrap,
)
from epochcost.report.charts.drawing import Drawer
from epochcost.report.charts.palette import standalone_svg
from epochcost.report.page_html import drawings
from epochcost.report.pages.page import Report
from epochcost.report.site import Site, build
from report_project import HOSTILE

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", name="site")
def site_fixture(inputs: Inputs, project: Path) -> Site:
    """The project's site as values."""
    return build(inputs, project / "site_templates")


@pytest.fixture(scope="module", name="drawn")
def drawn_fixture(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every drawn file of the site by address."""
    drawer = Drawer(tmp_path_factory.mktemp("drawn"))
    files = {uri: content() for uri, content in drawings(site, drawer)}
    drawer.close()
    return files


def _texts(svg: str) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter(f"{_SVG}text")]  # noqa: S314  our own


def test_a_headline_takes_an_asked_price_before_an_assumed_one(report: Report) -> None:
    """And says machine, date of the price, and who took the time."""
    for one in report.workloads:
        found, contests = headline(report.contests_of(one)), report.contests_of(one)
        if found is None:
            assert not contests
            continue
        best = (contests.get("train") or contests["serve"]).cheapest
        assert ("assumed price" in found.where) == best.price.assumed
        assert ("time published" in found.where) == best.mark.startswith("published")
        assert f"{best.price.as_of:%Y-%m}" in found.where


def test_a_badge_says_its_headline_as_text() -> None:
    """To eyes, to screen readers, and with markup shown as such."""
    found = Headline("cheapest epoch", "$0.03", f"on {HOSTILE}, price of 2026-07")
    svg = badge_svg(found)
    root = ElementTree.fromstring(svg)  # noqa: S314  our own
    assert root.get("role") == "img"
    assert root.get("aria-label") == f"cheapest epoch: $0.03 {found.where}"
    assert _texts(svg) == ["cheapest epoch", f"$0.03 {found.where}"]
    assert "<script" not in svg
    parts = [float(one.get("textLength", 0)) for one in root.iter(f"{_SVG}text")]
    assert sum(parts) < float(root.get("width", 0))


def test_each_priced_workload_has_a_badge(report: Report, site: Site) -> None:
    """Its file is there under the address that the page shows."""
    badges = badges_of(report)
    assert badges
    for one in badges:
        assert f"{one.headline.amount} on" in str(site.files[one.uri])
        assert one.uri in site.pages["sharing.md"]


def test_every_page_has_a_card_of_the_size_that_readers_show(
    site: Site, drawn: dict[str, bytes]
) -> None:
    """PNG, 1200 by 630 pixels; the page names it."""
    for text in site.pages.values():
        named = re.search(r'^card: "(.*)"$', text, re.MULTILINE)
        assert named is not None
        content = drawn[named[1]]
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", content[16:24]) == (WIDTH, HEIGHT) == (1200, 630)


def test_the_card_of_a_timed_model_is_its_own(report: Report, site: Site) -> None:
    """Others share that of their section."""
    assert 'card: "assets/cards/models-net.png"' in site.pages["models/net.md"]
    assert 'card: "assets/cards/models.png"' in site.pages["models/silent.md"]
    found = headline(report.contests_of(next(one for one in report.workloads if one.id == "net")))
    assert found is not None
    assert found.amount in _texts(site.cards["assets/cards/models-net.png"])


def test_text_of_a_card_is_shown_and_stays_inside() -> None:
    """Long words break, long texts end in an ellipsis, markup is text."""
    card = Card("x", HOSTILE * 3, "9" * 80, f"{'w' * 400} end")
    texts = _texts(card_svg(card))
    assert texts[0].startswith("</title><script>")
    assert len(texts) == 2 + 1 + 2 + 1
    assert texts[1].endswith("…")


def test_lines_break_where_they_fit() -> None:
    """None is wider than asked for, by the measure of the drawing."""
    lines = wrap("one two three " * 20, 20, 300, 3)
    assert len(lines) == 3
    assert all(text_width(line, 20) <= 301 for line in lines)


def test_a_file_of_a_chart_has_colours_and_paper(drawn: dict[str, bytes], site: Site) -> None:
    """Each chart as SVG without variables, which a viewer would draw black."""
    for name in site.figures:
        svg = drawn[f"data/figures/{name}.svg"].decode()
        assert "var(" not in svg
        rect = ElementTree.fromstring(svg)[0]  # noqa: S314  our own
        assert (rect.tag, rect.get("fill")) == (f"{_SVG}rect", "#ffffff")
    assert standalone_svg('<svg x="1"></svg>').startswith('<svg x="1"><rect ')


def test_each_chart_has_a_page_to_embed(drawn: dict[str, bytes], site: Site) -> None:
    """The chart alone, drawn, with a way back; hostile text is text."""
    for name in site.figures:
        page = drawn[f"embed/{name}.html"].decode()
        assert '<div class="ec-static"' in page
        assert f"#{name}" in page
        assert "<script>" not in page
        assert "window.hacked=1<" not in page
        assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"|https?://vega[^"]*', "", page)
