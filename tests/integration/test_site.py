"""A whole site, built by `epochcost build` with MkDocs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from report_project import write_project
from shared_builds import SharedBuilds

_LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}


def epochcost(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a project's folder."""
    command = [sys.executable, "-c", "from epochcost.cli.app import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", name="built")
def built_fixture(folder: Path) -> Path:
    """The browser tests' project, whose site was built without a warning."""
    return folder.parent


class Addresses(HTMLParser):
    """The loaded resources, links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of one element."""
        for name, value in attrs:
            if value and (tag, name) in _LOADS:
                self.loads.append(value)
            elif value and (tag, name) == ("a", "href"):
                self.links.append(value)
            elif value and name == "id":
                self.names.add(value)


def addresses(page: Path) -> Addresses:
    """The addresses of a page."""
    addresses_of_page = Addresses()
    addresses_of_page.feed(page.read_text(encoding="utf-8"))
    return addresses_of_page


def test_no_page_loads_anything_from_elsewhere(built: Path, address: str) -> None:
    """Scripts, styles and pictures come from the site."""
    for page in (built / "site").rglob("*.html"):
        for loaded in addresses(page).loads:
            local = loaded.removeprefix(address)  # the page's canonical address
            assert not urlsplit(local).scheme, f"{page.name}: {loaded}"


def test_every_link_and_anchor_leads_somewhere(built: Path) -> None:
    """Including raw HTML and downloads, which MkDocs does not check."""
    site = built / "site"
    pages = {page: addresses(page) for page in site.rglob("*.html") if page.name != "404.html"}
    for page, addresses_of_page in pages.items():
        for link in [*addresses_of_page.links, *addresses_of_page.loads]:
            parts = urlsplit(link)
            if parts.scheme or not link.strip("#"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{page.relative_to(site)}: {link}"
            if parts.fragment and target in pages and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in pages[target].names, f"{page.name}: {link}"


def test_charts_are_drawn_in_the_pages_and_kept_out_of_the_search(built: Path) -> None:
    """The page has static SVG; the search index has neither SVG nor spec."""
    page = (built / "site/models/net.html").read_text(encoding="utf-8")
    # The other is in a fold that only scripts open.
    assert page.count('class="ec-static"') == 2
    figures = re.findall(r'data-ec-(?:figure|later)="([^"]+)"', page)
    assert len(figures) == 3
    assert all((built / f"site/data/figures/{name}.js").is_file() for name in figures)
    assert "role-axis" in page
    index = json.loads((built / "site/search/search_index.json").read_text(encoding="utf-8"))
    text = json.dumps(index)
    assert "vega.github.io" not in text
    assert "role-axis" not in text
    assert "Machine without a price" in text


def test_downloads_hold_the_data(built: Path) -> None:
    """The files of all figures and charts exist, and the raw results."""
    assert (built / "site/data/figures.parquet").read_bytes()[:4] == b"PAR1"
    data = built / "site/data"
    document = json.loads((data / "figures.json").read_text(encoding="utf-8"))
    assert {row["workload"] for row in document["rows"]} == {"net", "paper"}
    counts = {len(list(data.glob(f"figures/*.{form}"))) for form in ("csv", "json", "svg")}
    assert len(counts) == 1
    assert min(counts) >= 3
    assert len(list(data.glob("results/local/*.json"))) == 4


def test_a_damaged_result_is_a_warning_that_names_it(tmp_path: Path, shared: SharedBuilds) -> None:
    """The site is built without the result; the only warning says what is wrong with it."""
    folder = shared.into(write_project(tmp_path))
    damaged = folder / "docs/data/results/local/damaged.json"
    damaged.write_bytes(b'{"format_version": 1, "tri')
    process = epochcost(folder, "build")
    assert process.returncode == 0
    assert process.stderr.count("damaged.json") == 1
    assert (folder / "site/index.html").is_file()


def test_a_wrong_spec_ends_the_build_with_its_line(tmp_path: Path, shared: SharedBuilds) -> None:
    """The message has the place and no traceback."""
    folder = shared.into(write_project(tmp_path))
    spec = folder / "specs/prices/box-2026.toml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("0.80", "-1"), encoding="utf-8")
    process = epochcost(folder, "build")
    assert process.returncode == 1
    assert re.search(r"box-2026\.toml:\d+:\d+: ", process.stderr)
    assert "Traceback" not in process.stderr


@pytest.fixture(scope="module", name="written")
def written_fixture(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with docs by --pages-to, for generators without plugins."""
    folder = tmp_path_factory.mktemp("written")
    process = epochcost(built, "build", "--pages-to", str(folder / "docs"))
    assert process.returncode == 0, process.stderr
    return folder


@pytest.mark.slow
def test_the_pages_build_without_the_plugin(written: Path) -> None:
    """MkDocs alone makes the same pages with their charts."""
    (written / "mkdocs.yml").write_text(_PLAIN_CONFIG, encoding="utf-8")
    plain = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=written,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 0, plain.stderr
    page = (written / "site/models/net.html").read_text(encoding="utf-8")
    assert page.count("<svg aria-hidden") == 2
    assert "&lt;svg" not in page


@pytest.mark.slow
def test_the_pages_build_with_zensical(written: Path) -> None:
    """Another generator makes the same pages with each chart, without warnings."""
    (written / "zensical.yml").write_text(_ZENSICAL_CONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "zensical.yml"]
    process = subprocess.run(command, cwd=written, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    pages = {page.relative_to(written / "docs") for page in (written / "docs").rglob("*.md")}
    made = {
        page.relative_to(written / "zensical") for page in (written / "zensical").rglob("*.html")
    }
    assert {page.with_suffix(".html") for page in pages} <= made
    page = (written / "zensical/models/net.html").read_text(encoding="utf-8")
    assert page.count("<svg aria-hidden") == 2


_ZENSICAL_CONFIG = """
site_name: plain
site_dir: zensical
use_directory_urls: false
markdown_extensions: [admonition, attr_list, md_in_html, tables]
"""
_PLAIN_CONFIG = """
site_name: plain
use_directory_urls: false
plugins: []
theme:
  name: mkdocs
markdown_extensions: [admonition, attr_list, md_in_html, tables]
"""


def test_links_go_to_web_addresses_only(built: Path) -> None:
    """No text of a spec becomes a link of another scheme."""
    for page in (built / "site").rglob("*.html"):
        for link in addresses(page).links:
            assert urlsplit(link).scheme in {"", "http", "https"}, link


def test_results_may_be_absent(tmp_path: Path, shared: SharedBuilds) -> None:
    """A project without results has a whole site that names the measuring command."""
    folder = shared.into(write_project(tmp_path, []))
    process = epochcost(folder, "build", "--strict")
    assert process.returncode == 0, process.stderr
    assert "epochcost run" in (folder / "site/models/silent.html").read_text(encoding="utf-8")
