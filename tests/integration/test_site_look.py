"""First impression of pages: text size, screens to the first chart, length and weight."""

from __future__ import annotations

import gzip
from typing import Any
from urllib.parse import urlsplit

import pytest

from browsed_site import (
    LIGHT,
    PHONE,
    Look,
    Site,
    open_and_count_shifts,
    open_folds,
    wait_until,
)
from site_survey import MOST_SHEETS, paper_faults, screen_faults, sheets

_KEY_PAGES = ("index.html", "models/net.html", "machines/local.html", "calculator.html")
_SCREEN = 800
_MOST_BYTES = 300_000
_MOST_SHIFT = 0.05
_LIVE = "document.querySelectorAll('.ec-sortable[data-state]').length"
# Displayed sizes of words, also in scaled charts.
_SEEN = """() => {
  const small = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, place = text.parentElement;
    const shown = place.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
    if (!text.data.trim() || !shown) { continue; }
    let size = parseFloat(getComputedStyle(place).fontSize);
    if (place.ownerSVGElement) {
      const scale = place.getScreenCTM();
      size *= Math.hypot(scale.a, scale.b);
    }
    if (size < (place.ownerSVGElement ? 10 : 12) - 0.05) { small.push([text.data, size]); }
  }
  const plot = document.querySelector(".ec-plot");
  return {
    small,
    chart: plot && plot.getBoundingClientRect().top + scrollY,
    height: document.documentElement.scrollHeight,
    fill: (document.body.innerText.match(/build the site again/g) || []).length,
  };
}"""


def _look_at(site: Site, uri: str, look: Look) -> dict[str, Any]:
    page = site.tab(look)
    page.set_viewport_size({"width": look.width, "height": _SCREEN})
    page.goto(site.address + uri)
    figures: dict[str, Any] = page.evaluate(_SEEN)
    page.close()
    return figures


@pytest.mark.parametrize(
    "look", [pytest.param(LIGHT, marks=pytest.mark.slow), PHONE], ids=["light", "phone"]
)
def test_words_are_large_enough_to_read(site: Site, look: Look) -> None:
    """At least 12 pixels, in charts 10; an empty place prompts at most once."""
    for uri in _KEY_PAGES:
        figures = _look_at(site, uri, look)
        assert figures["small"] == [], uri
        assert figures["fill"] <= 1, uri


@pytest.mark.parametrize(
    ("look", "turned"),
    [
        (PHONE, 0),
        pytest.param(LIGHT, 0, marks=pytest.mark.slow),
        pytest.param(PHONE, 600, marks=pytest.mark.slow),
        pytest.param(LIGHT, 600, marks=pytest.mark.slow),
    ],
    ids=["phone-jumped", "light-jumped", "phone-turned", "light-turned"],
)
def test_nothing_moves_while_a_page_wakes(site: Site, look: Look, turned: int) -> None:
    """Layout shift is at most 0.05, for jumping and for slow readers."""
    for uri in (*_KEY_PAGES, "models/index.html", "machines/index.html"):
        page = site.tab(look)
        open_and_count_shifts(page, site.address + uri)
        page.mouse.wheel(0, turned)
        wait_until(page, "document.readyState === 'complete'")
        for at, table in enumerate(page.locator(".ec-sortable:visible").all()):
            table.scroll_into_view_if_needed()
            wait_until(page, f"{_LIVE} > {at}")
        assert page.evaluate("window.shifted") <= _MOST_SHIFT, uri
        page.close()


def test_a_page_is_light_before_its_charts_live(site: Site) -> None:
    """Everything loaded with the page and its lists, compressed, without search."""
    for uri in ("index.html", "models/net.html", "calculator.html"):
        page, files = site.tab(), set[str]()
        page.on("request", lambda request, files=files: files.add(urlsplit(request.url).path[1:]))
        page.goto(site.address + uri)
        for at, table in enumerate(page.locator(".ec-sortable:visible").all()):
            table.scroll_into_view_if_needed()
            wait_until(page, f"{_LIVE} > {at}")
        page.close()
        paths = (site.folder / name for name in files - {"assets/vega.js"})
        loaded = sum(len(gzip.compress(path.read_bytes())) for path in paths if path.is_file())
        assert loaded <= _MOST_BYTES, uri
        assert "search/search_index.json" not in files, uri


def test_a_model_takes_few_sheets_of_paper(site: Site) -> None:
    """At most four of A4, no wider than the sheet, and without a number on two lines."""
    page = site.tab()
    for uri in ("models/net.html", "machines/local.html", "index.html"):
        page.goto(site.address + uri)
        assert sheets(page) <= MOST_SHEETS, uri
        assert list(paper_faults(page)) == [], uri


@pytest.mark.parametrize("look", [LIGHT, PHONE], ids=["light", "phone"])
def test_charts_fit_their_place_and_their_labels_do_not_meet(site: Site, look: Look) -> None:
    """Every page of the report, with its folds open; no page is wider than its window."""
    page = site.tab(look)
    for uri in site.pages():
        if 'class="ec-plot"' in (site.folder / uri).read_text(encoding="utf-8"):
            page.goto(site.address + uri)
            open_folds(page)
            assert list(screen_faults(page)) == [], uri


def test_the_day_below_a_price_is_no_bar(site: Site) -> None:
    """Only cells before the last one are drawn as bars: a date in the last cell stays text."""
    page = site.tab()
    page.goto(site.address + "index.html")
    page.evaluate(
        "document.body.innerHTML = `<table class='ec-bars'><tr><th>A</th>"
        "<td><span style='width: 50%'></span></td><td><span>2026-07-20</span></td></tr></table>`"
    )
    colours = page.eval_on_selector_all(
        ".ec-bars span", "spans => spans.map(span => getComputedStyle(span).backgroundColor)"
    )
    assert colours[0] != "rgba(0, 0, 0, 0)"
    assert colours[1] == "rgba(0, 0, 0, 0)"
