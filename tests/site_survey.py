"""Survey every page of a built site: labels of charts, widths, and printed pages.

    python tests/site_survey.py SITE [PART-OF-ADDRESS]

Prints a line for each fault and the number of pages that each page takes on paper; exits with 1 if
there is a fault.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from playwright.sync_api import Browser, Page

from browsed_site import LIGHT, PHONE, chromium, overflow, served, wait_until

# Sheets of A4 for a page of one model, whose folds are closed.
MOST_SHEETS = 4
# Width of an A4 sheet's text in CSS pixels, without margins.
_SHEET = 703
_PLOTS = ".ec-plot:is([data-ec-figure], [data-ec-later])"
_LIVE = f"""(plots => plots.every(plot => plot.dataset.state === 'interactive'))
  ([...document.querySelectorAll({_PLOTS!r})].filter(plot => plot.checkVisibility()))"""
# Texts that meet, texts and marks beyond the picture, and pictures beyond their place.
_CHARTS = """() => {
  const faults = [];
  const inside = (outer, box) => box.left >= outer.left - 2 && box.right <= outer.right + 2
    && box.top >= outer.top - 2 && box.bottom <= outer.bottom + 2;
  const shared = (one, other, from, to) =>
    Math.min(one[to], other[to]) - Math.max(one[from], other[from]);
  for (const svg of document.querySelectorAll(".ec-plot svg")) {
    if (!svg.checkVisibility()) { continue; }
    const plot = svg.closest(".ec-plot"), frame = svg.getBoundingClientRect();
    const fault = text => faults.push(`${plot.dataset.ecFigure || plot.dataset.ecLater}: ${text}`);
    if (plot.scrollWidth > plot.clientWidth + 1) { fault("wider than its place"); }
    const texts = [...svg.querySelectorAll("text")].map(
      text => ({ text: text.textContent.trim(), box: text.getBoundingClientRect(), at: text })
    ).filter(one => one.text && one.box.width && getComputedStyle(one.at).opacity !== "0");
    texts.forEach((one, at) => {
      if (!inside(frame, one.box)) { fault(`cut: ${one.text}`); }
      texts.slice(at + 1).filter(other => other.text !== one.text
        && shared(one.box, other.box, "left", "right") > -2
        && shared(one.box, other.box, "top", "bottom") > 4
      ).forEach(other => fault(`${one.text} meets ${other.text}`));
    });
    for (const mark of svg.querySelectorAll(".mark-symbol.role-mark path")) {
      if (!inside(frame, mark.getBoundingClientRect())) { fault("a mark is cut"); }
    }
  }
  return faults;
}"""
# Numbers of which a part stands on the next line.
_BROKEN = r"""() => {
  const faults = [], number = /[$€£]?\d[\d.,]*\d|[$€£]\d/g;
  const content = document.querySelector("article, main");
  const texts = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, place = text.parentElement, range = document.createRange();
    if (!place.checkVisibility() || place.closest("svg, code, .ec-source")) { continue; }
    for (const match of text.data.matchAll(number)) {
      range.setStart(text, match.index);
      range.setEnd(text, match.index + match[0].length);
      const tops = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
      if (tops.size > 1) { faults.push(`broken on paper: ${match[0]}`); }
    }
  }
  return faults;
}"""


def screen_faults(page: Page) -> Iterator[str]:
    """Faults of a page as it is shown, once its visible charts are interactive."""
    for plot in page.locator(_PLOTS).all():
        if plot.is_visible():
            plot.scroll_into_view_if_needed()
    wait_until(page, _LIVE)
    if (pixels := overflow(page)) > 0:
        yield f"{pixels} pixels wider than its window"
    yield from page.evaluate(_CHARTS)


def paper_faults(page: Page) -> Iterator[str]:
    """Numbers of a page that break over two lines on a sheet of A4."""
    page.set_viewport_size({"width": _SHEET, "height": 900})
    page.emulate_media(media="print")
    yield from page.evaluate(_BROKEN)
    if (pixels := overflow(page)) > 0:
        yield f"{pixels} pixels wider than a sheet"
    page.emulate_media(media="screen")


def sheets(page: Page) -> int:
    """Sheets of A4 that a page takes."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))


def _survey(browser: Browser, address: str, uri: str) -> Iterator[str]:
    for look in (LIGHT, PHONE):
        context = browser.new_context(viewport={"width": look.width, "height": 900})
        page = context.new_page()
        page.goto(address + uri)
        yield from (f"{uri} at {look.width}: {fault}" for fault in screen_faults(page))
        if look == LIGHT:
            yield from _on_paper(page, uri)
        context.close()


def _on_paper(page: Page, uri: str) -> Iterator[str]:
    count = sheets(page)
    sys.stdout.write(f"{uri}: {count} sheets\n")
    if count > MOST_SHEETS and fnmatch(uri, "models/*.html") and uri != "models/index.html":
        yield f"{uri}: {count} sheets of paper, at most {MOST_SHEETS}"
    yield from (f"{uri}: {fault}" for fault in paper_faults(page))


def main(site: Path, part: str = "") -> None:
    """Survey the pages whose address holds a text."""
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    faults = 0
    with served(site) as address, chromium() as browser:
        for uri in names:
            if part in uri and uri != "404.html":
                for fault in _survey(browser, address, uri):
                    sys.stdout.write(f"FAULT {fault}\n")
                    faults += 1
    sys.stdout.write(f"{len(names)} pages, {faults} faults\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
