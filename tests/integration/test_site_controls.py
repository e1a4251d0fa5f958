"""What readers open and narrow down by themselves: folds of long tables, legends of charts."""

from __future__ import annotations

from playwright.sync_api import Page

from browsed_site import Site, wait_until


def test_a_legend_filters_by_keyboard(site: Site) -> None:
    """Boxes fade all else; a click on the legend ticks them, and so it goes after a navigation."""
    page = site.begin()
    site.follow(page, "models/net.html")
    figure = page.locator("#models-net-cost-time")
    figure.locator(".ec-pick").focus()
    page.keyboard.press("Enter")
    box = figure.locator(".ec-picks input").first
    box.wait_for()
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.type !== 'checkbox'"):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    wait_until(page, f"{_FADED} > 0")
    assert figure.locator(".ec-picks label svg path").count() == len(_ticked(page))
    page.keyboard.press("Space")
    wait_until(page, f"{_FADED} === 0")
    symbol = figure.locator(".role-legend-symbol path").nth(1)
    symbol.scroll_into_view_if_needed()
    symbol.click(force=True)
    wait_until(page, f"{_FADED} > 0")
    assert _ticked(page) == [False, True, *[False] * (len(_ticked(page)) - 2)]


_FADED = (
    "document.querySelectorAll('.ec-live .mark-symbol.role-mark path[opacity^=\"0.15\"]').length"
)


def _ticked(page: Page) -> list[bool]:
    """Which boxes of the chart's filter are ticked."""
    found = page.evaluate("[...document.querySelectorAll('.ec-picks input')].map(x => x.checked)")
    return list(found)


def test_a_link_into_a_fold_opens_it(site: Site) -> None:
    """Whatever names a place inside of it; print opens every fold, and closes it again."""
    page = site.tab()
    page.goto(site.address + "data.html")
    fold = page.locator("details.ec-fold").last
    assert fold.get_attribute("open") is None
    page.evaluate(
        "document.querySelector('details.ec-fold td a').id = 'inside';"
        "history.replaceState(null, '', '#inside');"
        "dispatchEvent(new Event('hashchange'))"
    )
    wait_until(page, "document.querySelector('#inside').closest('details').open")
    fold.locator("summary").click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.ec-fold:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert fold.get_attribute("open") is None
    page.emulate_media(media="print")
    assert page.locator("details.ec-fold td").last.is_visible()
