"""A built site on a local server, and Chromium to read it."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# Chromium loads pages of its own for the suggestions below its address bar, which takes as long as
# loading a page of the site. The switch replaces Playwright's, whose features follow.
_DISABLED_FEATURES = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AimEnabled",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
)
# A new look at the page's state; nothing here measures time.
_PATIENCE_MS = 20_000
_SITEMAP_READ = (
    "performance.getEntriesByType('resource')"
    ".some(entry => entry.name.endsWith('sitemap.xml') && entry.responseEnd > 0)"
)
# A click on a link, and the theme's word that the page behind it is shown.
_FOLLOW = """address => new Promise(done => {
  let before = true;
  const shown = window.document$.subscribe(() => {
    if (before) { before = false; return; }
    shown.unsubscribe();
    done(location.href);
  });
  const link = Object.assign(document.createElement("a"), { href: address });
  document.body.append(link);
  link.click();
  link.remove();
})"""

# Sums up the layout shift without input in ``window.shifted``; see ``open_and_count_shifts``.
_SHIFTS = """window.shifted = 0;
window.shiftsCountFrom = Infinity;
new PerformanceObserver(list => list.getEntries().forEach(entry => {
  const counts = !entry.hadRecentInput && entry.startTime >= window.shiftsCountFrom;
  if (counts) { window.shifted += entry.value; }
})).observe({ type: "layout-shift", buffered: true });"""
_COUNT_SHIFTS = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
  window.shiftsCountFrom = performance.now();
  done();
})))"""
_FIRST_SCRIPT = "before-theme.js"
_WAIT = f"""new Promise((done, fail) => {{
  const most = performance.now() + {_PATIENCE_MS};
  const look = () => {{
    if (CONDITION) {{ done(); }}
    else if (performance.now() > most) {{ fail(new Error(`waited in vain for CONDITION`)); }}
    else {{ setTimeout(look, 10); }}
  }};
  look();
}})"""


@dataclass(frozen=True)
class Look:
    """How a reader sees pages: window width in CSS pixels, palette, and screen or paper."""

    name: str
    width: int
    scheme: Literal["light", "dark"]
    media: Literal["screen", "print"] = "screen"


LIGHT = Look("light", 1280, "light")
DARK = Look("dark", 1280, "dark")
PHONE = Look("phone", 390, "light")
PRINT = Look("print", 800, "dark", "print")
LOOKS = (LIGHT, DARK, PRINT, PHONE)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server without a log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a local server for a folder."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium. Without Chromium the tests fail and say how to install it."""
    program = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.fail("expected Chromium, found none. Install it: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        features = f"--disable-features={','.join(_DISABLED_FEATURES)}"
        arguments = ["--no-sandbox", "--disable-gpu", "--process-per-site", features]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@dataclass(frozen=True)
class Windows:
    """A browser's windows on a site: one for each look, for all tests of a file.

    A resting tab keeps the window's cache and process; a page in a new process takes twice as long.
    """

    browser: Browser
    address: str
    _contexts: dict[Look, BrowserContext] = field(default_factory=dict)

    def tab(self, look: Look) -> Page:
        """A new tab in the window of a look."""
        if look not in self._contexts:
            self._contexts[look] = self.browser.new_context(
                viewport={"width": look.width, "height": 900}, color_scheme=look.scheme
            )
            self._contexts[look].new_page().goto(f"{self.address}assets/logo.svg")
        return self._contexts[look].new_page()

    def tidy(self) -> None:
        """Close all tabs but the resting ones, and forget what pages stored."""
        for context in self.browser.contexts:
            if context in self._contexts.values():
                resting, *tabs = context.pages
                for tab in tabs:
                    tab.close()
                resting.evaluate("localStorage.clear()")
            else:
                context.close()


@dataclass
class Site:
    """A built site on a local server. Complaints are errors of pages and external requests."""

    folder: Path
    windows: Windows
    complaints: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address of the site's first page."""
        return self.windows.address

    @property
    def browser(self) -> Browser:
        """The browser of its windows."""
        return self.windows.browser

    def pages(self) -> list[str]:
        """All pages of the site, except pages of a single chart, which have a separate test."""
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*.html"))
        return sorted(path.as_posix() for path in found if path.parts[0] != "embed")

    def tab(self, look: Look = LIGHT) -> Page:
        """A new tab whose errors and requests are recorded; tabs of a look share a cache."""
        page = self.windows.tab(look)
        page.set_default_timeout(_PATIENCE_MS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._watch(request.url))
        return page

    def begin(self, look: Look = LIGHT) -> Page:
        """A tab with the first page, after the theme has read which links it may follow itself."""
        page = self.tab(look)
        page.goto(f"{self.address}index.html")
        wait_until(page, _SITEMAP_READ)
        page.evaluate("new Promise(done => setTimeout(done))")
        return page

    def follow(self, page: Page, uri: str) -> None:
        """Go to another page by instant navigation, as a click on a link does."""
        reached = page.evaluate(_FOLLOW, self.address + uri)
        assert reached == self.address + uri

    def _hear(self, message: object) -> None:
        if getattr(message, "type", "") in {"error", "warning"}:
            self.complaints.append(str(getattr(message, "text", message)))

    def _watch(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:", "file:")):
            self.complaints.append(f"a request leaves the machine: {url}")


def open_and_count_shifts(page: Page, address: str) -> None:
    """Open a page and sum up in ``window.shifted`` the layout shift by its scripts.

    The first script waits until the HTML is shown. A busy browser may show a table in parts, whose
    columns move with each part.
    """
    held: list[Route] = []
    page.add_init_script(_SHIFTS)
    page.route(f"**/{_FIRST_SCRIPT}", lambda route: held.append(route))  # noqa: PLW0108
    page.goto(address, wait_until="commit")
    wait_until(page, f"""document.querySelector('script[src$="{_FIRST_SCRIPT}"]')""")
    page.evaluate(_COUNT_SHIFTS)
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()
    page.unroute(f"**/{_FIRST_SCRIPT}")
    page.wait_for_load_state()


def open_folds(page: Page) -> None:
    """Open all folded parts of a page."""
    page.evaluate("document.querySelectorAll('.ec-fold').forEach(one => { one.open = true })")


def put_on(page: Page, look: Look) -> None:
    """Show a page in another look without loading the page again."""
    if page.viewport_size != {"width": look.width, "height": 900}:
        page.set_viewport_size({"width": look.width, "height": 900})
    page.emulate_media(media=look.media, color_scheme=look.scheme)
    scheme = "slate" if look.scheme == "dark" else "default"
    wait_until(page, f"document.body.dataset.mdColorScheme === '{scheme}'")


def wait_until(page: Page, condition: str) -> None:
    """Wait for a condition in JavaScript.

    Playwright's own waiting evaluates text in the page, which the pages' policy refuses.
    """
    page.evaluate(_WAIT.replace("CONDITION", condition))


def overflow(page: Page) -> int:
    """Number of pixels by which the page is wider than its window."""
    width = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return int(width)
