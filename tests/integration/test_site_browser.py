"""The site in Chromium: light, dark, phone, print; charts, downloads, palette."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from playwright.sync_api import Page

import accessibility
from browsed_site import (
    DARK,
    LIGHT,
    LOOKS,
    PHONE,
    Look,
    Site,
    open_folds,
    overflow,
    put_on,
    wait_until,
)

_INTERACTIVE = "document.querySelectorAll('.ec-plot[data-state=interactive]').length"
# Legend names that reach beyond their chart and would be cut.
_CUT = """[...document.querySelectorAll(".ec-live svg")].flatMap(svg => {
  const end = svg.getBoundingClientRect().right;
  const names = [...svg.querySelectorAll(".role-legend-label text")];
  return names.filter(name => name.getBoundingClientRect().right > end).map(x => x.textContent);
})"""
# One page of each kind, with a sign that its scripts are done.
_KINDS = {
    "index.html": "main h1",
    "models/index.html": "main h1",
    "models/net.html": ".ec-plot[data-state=interactive]",
    "machines/local.html": "main h1",
    "prices.html": "main h1",
    "calculator.html": ".ec-verdict",
    "rent-or-buy.html": "main h1",
    "changed.html": "main h1",
    "sources/kroutikov-2016.html": "main h1",
    "data.html": "main h1",
    "explanation/figures.html": "main h1",
}
# The longest are also checked in dark and on a phone, by the rules that depend on it.
_LOOKED_AT_AGAIN = ("index.html", "models/net.html", "machines/local.html", "calculator.html")
_BY_LOOK = {"dark": ["color-contrast"], "phone": ["scrollable-region-focusable", "target-size"]}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pages_open(site: Site, every: bool) -> None:
    """In every look: no error, no external request, no overflow, no text run as code."""
    page = site.begin()
    looks = list(LOOKS)
    for uri in _walked(site) if every else _KINDS:
        site.follow(page, uri)
        for look in looks:
            put_on(page, look)
            assert overflow(page) <= 0, (uri, look.name)
        assert page.evaluate("window.hacked") is None, uri
        assert page.locator("h1").count() == 1, uri
        looks.reverse()  # the next page begins as this one ends


def _walked(site: Site) -> list[str]:
    """The pages that instant navigation reaches; another test has the others."""
    return [uri for uri in site.pages() if uri != "404.html"]


@pytest.mark.parametrize("uris", [_LOOKED_AT_AGAIN, pytest.param(_KINDS, marks=pytest.mark.slow)])
def test_pages_are_accessible(site: Site, uris: Collection[str]) -> None:
    """axe-core finds no violation in light, dark and on a phone."""
    page = site.tab()
    page.add_init_script(accessibility.program())
    violations = []
    for uri in uris:
        put_on_screen(page, site.address + uri, _KINDS[uri])
        for look in (LIGHT, DARK, PHONE) if uri in _LOOKED_AT_AGAIN else (LIGHT,):
            put_on(page, look)
            broken = accessibility.violations(page, _BY_LOOK.get(look.name, []))
            violations += [(uri, look.name, *violation) for violation in broken]
        put_on(page, LIGHT)
    assert violations == []


def put_on_screen(page: Page, address: str, settled: str) -> None:
    """Open a page and wait until its scripts are done."""
    page.goto(address)
    accessibility.hold_still(page)
    if "interactive" in settled:
        page.locator(".ec-plot").first.scroll_into_view_if_needed()
    page.locator(settled).first.wait_for()


def test_a_chart_can_be_read_with_the_keyboard(site: Site) -> None:
    """Tab reaches the downloads and the table of a chart's data, and Enter opens it."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    open_folds(page)
    figure = page.locator(".ec-figure:has(.ec-data)").first
    figure.locator(".ec-tools a").first.focus()
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
        if page.evaluate("document.activeElement.localName") == "summary":
            break
    assert "JSON" in reached
    assert "Table of this" in reached[-1]
    page.keyboard.press("Enter")
    figure.locator(".ec-table td").first.wait_for()


def test_pages_run_no_script_but_their_own(site: Site) -> None:
    """Injected scripts, and text that becomes code, are refused."""
    page = site.browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(site.address + "models/net.html")
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.hacked = 1";
          document.head.append(script);
          document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked = 1'>");
          const late = document.createElement("script");
          late.src = "https://elsewhere.example/x.js";
          document.head.append(late);
        }"""
    )
    wait_until(page, "document.body.lastElementChild.complete")
    assert page.evaluate("window.hacked") is None
    assert len([text for text in refused if "Content Security Policy" in text]) >= 3


def test_print_is_light_even_for_readers_of_dark_pages(site: Site) -> None:
    """Text and lines of charts use the light palette."""
    page = site.tab(DARK)
    page.goto(site.address + "models/net.html")
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--ec-ink').trim()"
    assert page.evaluate(background) != "rgb(255, 255, 255)"
    page.emulate_media(media="print")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    body_ink = ink.replace("documentElement", "body")
    assert page.evaluate(body_ink) == "#24292f"


@pytest.mark.parametrize("look", [LIGHT, PHONE], ids=["light", "phone"])
def test_charts_become_interactive_in_view_only(site: Site, look: Look) -> None:
    """The library loads once, with the first visible chart; each chart then works.

    Long legend names end in an ellipsis.
    """
    page = site.tab(look)
    libraries: list[str] = []
    page.on("request", lambda r: libraries.append(r.url) if r.url.endswith("vega.js") else None)
    page.goto(site.address + "models/net.html")
    open_folds(page)
    plots = page.locator(".ec-plot")
    last = plots.count() - 1
    assert last >= 1
    assert plots.nth(last).get_attribute("data-state") == "static"
    for at in range(last + 1):
        plots.nth(at).scroll_into_view_if_needed()
        wait_until(page, f"{_INTERACTIVE} > {at}")
        assert plots.nth(at).locator("svg:visible").count() == 1
    assert len(libraries) == 1
    assert overflow(page) <= 0
    assert page.evaluate(_CUT) == []


def test_an_interactive_chart_answers_the_pointer(site: Site) -> None:
    """A point's tooltip is text, even for a hostile name."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    plot = page.locator(".ec-plot").first
    plot.scroll_into_view_if_needed()
    wait_until(page, f"{_INTERACTIVE} > 0")
    plot.locator(".ec-live .mark-symbol.role-mark path").last.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "price plan" in tooltip.inner_text()
    assert page.evaluate("window.hacked") is None


def test_downloads_give_the_data(site: Site) -> None:
    """All files of a chart arrive with their names."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    files = {}
    for form in ("CSV", "JSON", "SVG"):
        with page.expect_download() as waiting:
            page.locator(".ec-tools").first.get_by_text(form, exact=True).click()
        download = waiting.value
        assert download.suggested_filename == f"models-net-ratio.{form.lower()}"
        files[form] = Path(download.path()).read_bytes()
    assert json.loads(files["JSON"])["rows"]
    assert files["CSV"].startswith(b"machine,price_plan,")
    assert files["SVG"].startswith(b"<svg ")


def test_a_chart_stands_alone_in_a_frame(site: Site) -> None:
    """It becomes interactive, and links back to its place on the site."""
    page = site.tab(Look("frame", 800, "light"))
    source = f"{site.address}embed/models-net-train.html"
    page.set_content(f'<iframe src="{source}" width="760" height="620"></iframe>')
    frame = page.frame_locator("iframe")
    frame.locator(".ec-live svg").wait_for()
    assert frame.locator("h1").count() == 1
    link = frame.locator("a").first
    assert link.get_attribute("href") == "../models/net.html#models-net-train"
    assert link.get_attribute("target") == "_blank"


def test_a_narrow_frame_shows_its_chart_once(site: Site) -> None:
    """The interactive chart hides the static one, on the screen of a phone too."""
    page = site.tab(PHONE)
    page.goto(f"{site.address}embed/models-net-train.html")
    page.locator(".ec-plot[data-state=interactive]").wait_for()
    assert page.locator("svg:visible").count() == 1


def test_pages_outside_of_navigation_open_too(site: Site) -> None:
    """Every page of one chart, and the page for unknown addresses, in every look."""
    alone = sorted(path.name for path in (site.folder / "embed").glob("*.html"))
    assert alone
    page = site.tab()
    for uri in ["404.html", *(f"embed/{name}" for name in alone)]:
        page.goto(site.address + uri)
        assert page.locator("h1").count() == 1, uri
        for look in (LIGHT, DARK, PHONE):
            page.set_viewport_size({"width": look.width, "height": 900})
            page.emulate_media(color_scheme=look.scheme)
            assert overflow(page) <= 0, (uri, look.name)


def test_pages_of_one_chart_are_accessible(site: Site) -> None:
    """axe-core finds no violation there or on the page for unknown addresses."""
    page = site.tab()
    page.add_init_script(accessibility.program())
    for uri in ("embed/models-net-train.html", "404.html"):
        page.goto(site.address + uri)
        accessibility.hold_still(page)
        assert accessibility.violations(page) == [], uri


def test_the_palette_switch_recolours_charts_in_place(site: Site) -> None:
    """The same drawing gets other colours, without redrawing."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    colour = (
        "getComputedStyle(document.querySelector('.ec-plot svg [stroke^=\"var(--ec-series\"]'))"
        ".stroke"
    )
    before = page.evaluate(colour)
    for _ in range(2):  # from the system's palette to light, then to dark
        page.locator("form[data-md-component=palette] label:not([hidden])").click()
    wait_until(page, "document.body.dataset.mdColorScheme === 'slate'")
    assert page.evaluate(colour) != before


def test_instant_navigation_brings_charts_and_goes_back(site: Site) -> None:
    """Charts work on a page reached by a click, and after going back."""
    page = site.begin()
    page.evaluate("window.sameDocument = true")
    page.locator("main a[href$='models/net.html']").last.click()
    page.wait_for_url("**/models/net.html")
    page.locator("#how-do-we-know").wait_for()  # the address changes before the content
    page.locator(".ec-plot").first.scroll_into_view_if_needed()
    wait_until(page, f"{_INTERACTIVE} > 0")
    assert page.evaluate("window.sameDocument") is True
    page.go_back()
    page.wait_for_url("**/index.html")
    page.locator("h1", has_text="What does it cost").wait_for()


def test_the_site_opens_from_the_disk(site: Site) -> None:
    """Pages open and charts become interactive without a server."""
    page = site.tab()
    page.goto((site.folder / "index.html").as_uri())
    page.locator("main a[href$='models/net.html']").last.click()
    page.wait_for_url("**/models/net.html")
    page.locator("#how-do-we-know").wait_for()  # the address changes before the content
    page.locator(".ec-plot").first.scroll_into_view_if_needed()
    wait_until(page, f"{_INTERACTIVE} > 0")


def test_charts_show_without_javascript(site: Site) -> None:
    """The page contains the static chart."""
    context = site.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.address + "models/net.html")
    static = page.locator(".ec-static svg").first
    static.scroll_into_view_if_needed()
    box = static.bounding_box()
    assert box is not None
    assert box["width"] > 300
    assert box["height"] > 150


def test_previews_of_links_have_title_description_and_address(site: Site) -> None:
    """Of generated and hand-written pages."""
    for uri, title in (
        ("models/net.html", ""),
        ("explanation/figures.html", "What the figures say"),
    ):
        text = (site.folder / uri).read_text(encoding="utf-8")
        assert f'<meta property="og:title" content="{title}' in text
        assert '<meta property="og:description" content="' in text
        assert f'<meta property="og:url" content="{site.address}{uri}">' in text


def test_search_finds_a_machine(site: Site) -> None:
    """By its name, in the site's search."""
    page = site.tab()
    page.goto(site.address + "index.html")
    page.locator("input[name=query]").click()
    page.locator("input[name=query]").press_sequentially("without a price")
    page.locator(".md-search-result__item", has_text="Machine without a price").first.wait_for()
