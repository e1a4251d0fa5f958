"""The key pages look as they did when somebody last looked at them and kept their pictures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

import accessibility
import snapshots
from browsed_site import DARK, LIGHT, PHONE, PRINT, Look, Site, put_on

_KEPT = Path(__file__).parents[1] / "golden" / "pages"
_RENEW = "EPOCHCOST_RENEW_SNAPSHOTS"
_TOLERANCE = 0.01
# By page its address, and the looks beside the light and the phone's.
_PAGES = {
    "home": ("index.html", (DARK, PRINT)),
    "model": ("models/net.html", (DARK,)),
    "machine": ("machines/local.html", ()),
    "prices": ("prices.html", ()),
    "source": ("sources/paper.html", ()),
}


def opened(site: Site, name: str) -> Page:
    """A page that holds still, in the pictures' font and without interactive charts."""
    context = site.browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.add_init_script(snapshots.SCRIPT)
    page.goto(site.address + _PAGES[name][0])
    accessibility.hold_still(page)
    snapshots.in_one_font(page)
    return page


def seen(site: Site, page: Page, look: Look) -> bytes:
    """The first screens of a page."""
    put_on(page, look)
    page.set_viewport_size({"width": look.width, "height": 1800})
    return snapshots.picture(site.browser, page)


@pytest.mark.parametrize("name", _PAGES)
def test_a_key_page_looks_as_it_did(site: Site, name: str) -> None:
    """Its pictures are the kept ones, but for the smoothing of letters."""
    page, found = opened(site, name), {}
    for look in (LIGHT, PHONE, *_PAGES[name][1]):
        kept, now = _KEPT / f"{name}-{look.name}.png", seen(site, page, look)
        if os.environ.get(_RENEW):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(now)
        found[look.name] = snapshots.apart(site.browser, kept.read_bytes(), now)
    assert max(found.values()) <= _TOLERANCE, f"{found}; if it looks right: make snapshots"


def test_a_picture_tells_a_moved_block(site: Site) -> None:
    """A heading that is gone, and one colour for another, are further apart than is tolerated."""
    page = opened(site, "home")
    before = snapshots.picture(site.browser, page)
    assert snapshots.apart(site.browser, before, before) == 0
    page.evaluate("document.querySelector('main h1').remove()")
    moved = snapshots.picture(site.browser, page)
    assert snapshots.apart(site.browser, before, moved) > _TOLERANCE
    put_on(page, DARK)
    assert snapshots.apart(site.browser, moved, snapshots.picture(site.browser, page)) > 0.5
