"""Load times of pages of a built site in Chromium, with the CPU slowed down four times.

    python benchmarks/page_load.py SITE [--pages index.html models/mnist-mlp.html …] [--repeats 5]

SITE is a folder of `epochcost build`, served on this machine. Each page is opened in a fresh
browser context and scrolled to its end. A line has the median first contentful paint in
milliseconds, the sum of all layout shifts without input (an upper bound of Lighthouse's cumulative
layout shift), and the loaded kilobytes after gzip without the chart library. The last column has
the number of loads and the size of that library.

Everything that loads while a list or chart becomes visible counts. Content behind a click does not
count: the search index, and charts in folds.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsed_site import SHIFTS, chromium, served

_SLOWDOWN = 4
_LIBRARY = "assets/vega.js"
# Scroll to the end by screens, so that every chart becomes visible.
_SCROLL = """async () => {
  for (let at = 0; at < document.documentElement.scrollHeight; at += innerHeight) {
    scrollTo(0, at);
    await new Promise(done => setTimeout(done, 100));
  }
  const waiting = () => document.querySelector(".ec-plot[data-state=static]");
  for (let left = 200; left > 0 && waiting(); left--) {
    waiting().scrollIntoView();
    await new Promise(done => setTimeout(done, 50));
  }
}"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
_ROW = "{:<34} {:>9} {:>7} {:>7} {:>10}"


@dataclass(frozen=True)
class Load:
    """A visit's first paint in milliseconds, its layout shift, and the loaded files in order."""

    paint_milliseconds: float
    shift: float
    files: tuple[str, ...]


def loaded(browser: Browser, address: str, page_name: str) -> Load:
    """Open a page with an empty cache, and scroll to the page's end."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    files: list[str] = []
    page.on("request", lambda request: files.append(urlsplit(request.url).path.lstrip("/")))
    page.add_init_script(SHIFTS)
    tools = context.new_cdp_session(page)
    tools.send("Emulation.setCPUThrottlingRate", {"rate": _SLOWDOWN})
    page.goto(address + page_name)
    paint = page.evaluate(_PAINT)
    page.evaluate(_SCROLL)
    load = Load(paint, page.evaluate("window.shifted"), tuple(files))
    context.close()
    return load


def kilobytes(site: Path, files: Sequence[str]) -> float:
    """Total size of the files, each compressed with gzip."""
    paths = (site / name for name in dict.fromkeys(files))
    return sum(len(gzip.compress(path.read_bytes())) for path in paths if path.is_file()) / 1000


def line(site: Path, page_name: str, loads: Sequence[Load]) -> str:
    """A row with the page's name, paint time, layout shift, kilobytes and chart library."""
    files = loads[0].files
    first = [name for name in files if name != _LIBRARY]
    return _ROW.format(
        page_name,
        f"{statistics.median(load.paint_milliseconds for load in loads):.0f}",
        f"{max(load.shift for load in loads):.3f}",
        f"{kilobytes(site, first):.0f}",
        f"{files.count(_LIBRARY)} x {kilobytes(site, [_LIBRARY]):.0f}",
    )


def main() -> None:
    """Print a line for each page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument(
        "--pages",
        nargs="+",
        default=["index.html", "models/mnist-mlp.html", "calculator.html", "prices.html"],
    )
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(_ROW.format("page", "paint ms", "shift", "kB", "library kB"))
    with served(options.site) as address, chromium() as browser:
        for page_name in options.pages:
            loads = [loaded(browser, address, page_name) for _ in range(options.repeats)]
            print(line(options.site, page_name, loads), flush=True)


if __name__ == "__main__":
    main()
