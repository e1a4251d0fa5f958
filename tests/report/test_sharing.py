"""Charts to share: as SVG files and as pages to embed."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from epochcost.report.charts.drawing import Drawer
from epochcost.report.page_html import drawings
from epochcost.report.site import Site

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", name="drawn")
def drawn_fixture(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every drawn file of the site by address."""
    drawer = Drawer(tmp_path_factory.mktemp("drawn"))
    return dict(drawings(site, drawer))


def test_a_file_of_a_chart_has_colours_and_paper(drawn: dict[str, bytes], site: Site) -> None:
    """Each SVG file has fixed colours and a background, since viewers do not know variables."""
    for name in site.figures:
        svg = drawn[f"data/figures/{name}.svg"].decode()
        assert "var(" not in svg
        rect = ElementTree.fromstring(svg)[0]  # noqa: S314  our own
        assert (rect.tag, rect.get("fill")) == (f"{_SVG}rect", "#ffffff")


def test_each_chart_has_a_page_to_embed(drawn: dict[str, bytes], site: Site) -> None:
    """Each chart has a page to embed with a link back, without scripts or foreign addresses."""
    for name in site.figures:
        page = drawn[f"embed/{name}.html"].decode()
        assert '<div class="ec-static"' in page
        assert f"#{name}" in page
        assert "<script>" not in page
        assert "window.hacked=1<" not in page
        assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"|https?://vega[^"]*', "", page)
