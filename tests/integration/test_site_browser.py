"""The site in a real Chromium: light, dark, on a phone, in print; charts, downloads, palette."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from report_project import write_project

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# A new look at the page's state; nothing here measures time.
_PATIENCE_MS = 20_000
_SITEMAP_READ = (
    "performance.getEntriesByType('resource')"
    ".some(entry => entry.name.endsWith('sitemap.xml') && entry.responseEnd > 0)"
)
_INTERACTIVE = "document.querySelectorAll('.ec-plot[data-state=interactive]').length"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server without a log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class Site:
    """A built site behind an address; what pages complain about or fetch from elsewhere."""

    def __init__(self, folder: Path, address: str, browser: Browser) -> None:
        self.folder = folder
        self.address = address
        self.browser = browser
        self.complaints: list[str] = []

    def pages(self) -> list[str]:
        """Every page of the site."""
        found = self.folder.rglob("*.html")
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def tab(self, width: int = 1280, scheme: str = "light") -> Page:
        """A new tab that listens to everything."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            accept_downloads=True,
        )
        page = context.new_page()
        page.set_default_timeout(_PATIENCE_MS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._watch(request.url))
        return page

    def _hear(self, message: object) -> None:
        if getattr(message, "type", "") in {"error", "warning"}:
            self.complaints.append(str(getattr(message, "text", message)))

    def _watch(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:", "file:")):
            self.complaints.append(f"a request leaves the machine: {url}")


@pytest.fixture(scope="module", name="project")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, not built yet."""
    return write_project(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module", name="folder")
def folder_fixture(project: Path, address: str) -> Path:
    """The built site of the project; instant navigation wants to know its address."""
    published = {"EPOCHCOST_SITE_URL": address, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    subprocess.run(command, cwd=project, env={**os.environ, **published}, check=True)
    return project / "site"


@pytest.fixture(scope="module", name="browser")
def browser_fixture() -> Iterator[Browser]:
    """The system's Chromium; without one the tests fail and say how to get it."""
    program = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.fail("demanded Chromium; got none. Install it: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module", name="address")
def address_fixture(project: Path) -> Iterator[str]:
    """The address of a local server of the site that is to be built."""
    handler = functools.partial(Quiet, directory=str(project / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(name="site")
def site_fixture(folder: Path, address: str, browser: Browser) -> Iterator[Site]:
    """The site; afterwards no page may have complained."""
    site = Site(folder, address, browser)
    yield site
    for context in browser.contexts:
        context.close()
    assert site.complaints == []


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    width = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return int(width)


@pytest.mark.parametrize(
    ("width", "scheme", "media"),
    [(1280, "light", "screen"), (1280, "dark", "screen"), (390, "light", "screen"),
     (800, "dark", "print")],
    ids=["light", "dark", "phone", "print"],
)  # fmt: skip
def test_every_page_opens(site: Site, width: int, scheme: str, media: str) -> None:
    """No error, no request to elsewhere, nothing wider than the window, no text run as code."""
    page = site.tab(width, scheme)
    page.emulate_media(media="print" if media == "print" else "screen")
    for uri in site.pages():
        page.goto(site.address + uri)
        assert overflow(page) <= 0, uri
        assert page.evaluate("window.hacked") is None, uri
        assert page.locator("h1").count() == 1, uri


def test_print_is_light_even_for_readers_of_dark_pages(site: Site) -> None:
    """Paper is white: text and lines of charts take the light palette."""
    page = site.tab(scheme="dark")
    page.goto(site.address + "models/net.html")
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--ec-ink').trim()"
    assert page.evaluate(background) != "rgb(255, 255, 255)"
    page.emulate_media(media="print")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    body_ink = ink.replace("documentElement", "body")
    assert page.evaluate(body_ink) == "#24292f"


@pytest.mark.parametrize("width", [1280, 390])
def test_charts_become_interactive_in_view_only(site: Site, width: int) -> None:
    """The library is loaded when the first chart comes into view, once; each chart then lives."""
    page = site.tab(width)
    libraries: list[str] = []
    page.on("request", lambda r: libraries.append(r.url) if r.url.endswith("vega.js") else None)
    page.goto(site.address + "models/net.html")
    plots = page.locator(".ec-plot")
    last = plots.count() - 1
    assert last >= 2
    assert plots.nth(last).get_attribute("data-state") == "static"
    for at in range(last + 1):
        plots.nth(at).scroll_into_view_if_needed()
        page.wait_for_function(f"{_INTERACTIVE} > {at}")
        assert plots.nth(at).locator("svg").count() == 1
    assert len(libraries) == 1
    assert overflow(page) <= 0


def test_an_interactive_chart_answers_the_pointer(site: Site) -> None:
    """Over a point stands what it is, as text even where a name is hostile."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    plot = page.locator(".ec-plot").first
    plot.scroll_into_view_if_needed()
    page.wait_for_function(f"{_INTERACTIVE} > 0")
    plot.locator(".mark-symbol.role-mark path").last.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "price plan" in tooltip.inner_text()
    assert page.evaluate("window.hacked") is None


def test_charts_show_without_javascript(site: Site) -> None:
    """The static chart is part of the page."""
    context = site.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.address + "models/net.html")
    static = page.locator(".ec-static svg").first
    static.scroll_into_view_if_needed()
    box = static.bounding_box()
    assert box is not None
    assert box["width"] > 300
    assert box["height"] > 150


def test_downloads_give_the_data(site: Site) -> None:
    """Both files of a chart arrive under their names."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    for form in ("CSV", "JSON"):
        with page.expect_download() as waiting:
            page.locator(".ec-tools a", has_text=form).first.click()
        download = waiting.value
        assert download.suggested_filename == f"models-net-cost-time.{form.lower()}"
        text = Path(download.path()).read_text(encoding="utf-8")
        if form == "JSON":
            assert json.loads(text)["rows"]
        else:
            assert text.startswith("machine,price_plan,")


def test_the_palette_switch_recolours_charts_in_place(site: Site) -> None:
    """The same drawing takes other colours: nothing is drawn again."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    colour = (
        "getComputedStyle(document.querySelector('.ec-plot svg [stroke^=\"var(--ec-series\"]'))"
        ".stroke"
    )
    before = page.evaluate(colour)
    for _ in range(2):  # from the system's palette to light, then to dark
        page.locator("form[data-md-component=palette] label:not([hidden])").click()
    page.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
    assert page.evaluate(colour) != before


def test_instant_navigation_brings_charts_and_goes_back(site: Site) -> None:
    """Charts of a page that was fetched by a click work, and so does the way back."""
    page = site.tab()
    page.goto(site.address + "index.html")
    page.wait_for_function(_SITEMAP_READ)  # only then the theme takes clicks
    page.evaluate("new Promise(done => setTimeout(() => { window.sameDocument = true; done() }))")
    page.locator("main a[href$='models/net.html']").last.click()
    page.wait_for_url("**/models/net.html")
    page.locator("#how-it-was-measured").wait_for()  # the address changes before the content
    page.locator(".ec-plot").first.scroll_into_view_if_needed()
    page.wait_for_function(f"{_INTERACTIVE} > 0")
    assert page.evaluate("window.sameDocument") is True
    page.go_back()
    page.wait_for_url("**/index.html")
    page.locator("h1", has_text="Which machine").wait_for()


def test_search_finds_a_machine(site: Site) -> None:
    """By its name, on the site itself."""
    page = site.tab()
    page.goto(site.address + "index.html")
    page.locator("input[name=query]").click()
    page.locator("input[name=query]").press_sequentially("without a price")
    page.locator(".md-search-result__item", has_text="Machine without a price").first.wait_for()


def test_the_site_opens_from_the_disk(site: Site) -> None:
    """Pages open and charts become interactive without a server."""
    page = site.tab()
    page.goto((site.folder / "index.html").as_uri())
    page.locator("main a[href$='models/net.html']").last.click()
    page.wait_for_url("**/models/net.html")
    page.locator("#how-it-was-measured").wait_for()  # the address changes before the content
    page.locator(".ec-plot").first.scroll_into_view_if_needed()
    page.wait_for_function(f"{_INTERACTIVE} > 0")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_calculator_answers_and_its_address_keeps_the_question(site: Site, width: int) -> None:
    """Twice the epochs, asked for by an address, cost more; the address follows the form."""
    page = site.tab(width)
    page.goto(site.address + "calculator.html")
    page.locator(".ec-verdict strong").wait_for()
    first = page.locator(".ec-calculated tbody strong").all_inner_texts()
    size = page.locator("[name=size]")
    size.fill(str(float(size.input_value()) * 2))
    assert page.locator(".ec-calculated tbody strong").all_inner_texts() != first
    asked = page.evaluate("location.href")
    doubled = page.locator(".ec-calculated").inner_text()
    other = site.tab(width)
    other.goto(asked)
    other.locator(".ec-verdict strong").wait_for()
    assert other.locator(".ec-calculated").inner_text() == doubled
    assert overflow(page) <= 0
    page.locator(".ec-calculator [type=reset]").click()
    page.wait_for_function("location.hash === ''")
    assert page.locator(".ec-calculated tbody strong").all_inner_texts() == first


def test_the_calculator_says_what_misses_a_demand(site: Site) -> None:
    """A deadline that nothing meets leaves the list, marked, and no verdict."""
    page = site.tab()
    page.goto(site.address + "calculator.html")
    page.locator(".ec-verdict").wait_for()
    page.locator("[name=deadline]").fill("0.0000001")
    page.locator(".ec-calculated", has_text="No machine and plan meets your demands").wait_for()
    rows = page.locator(".ec-calculated tbody tr")
    assert rows.count() == page.locator(".ec-calculated tr.ec-missed").count() > 0


def test_the_calculator_works_from_the_disk_and_says_what_it_needs(site: Site) -> None:
    """Without a server it computes; without JavaScript it names what answers instead."""
    page = site.tab()
    page.goto((site.folder / "calculator.html").as_uri())
    page.locator(".ec-verdict strong").wait_for()
    plain = site.browser.new_context(java_script_enabled=False).new_page()
    plain.goto(site.address + "calculator.html")
    assert "epochcost cheapest" in plain.locator(".md-content noscript").inner_text()
