"""Takes the pictures of docs/images from a built site, in a real Chromium: `make screenshots`.

python tests/integration/screenshots.py SITE docs/images
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

# Picture name: page, width in CSS pixels, colour scheme.
PICTURES = {
    "home": ("index.html", 1280, "light"),
    "home-dark": ("index.html", 1280, "dark"),
    "home-phone": ("index.html", 390, "light"),
    "model": ("models/mnist-mlp.html", 1280, "light"),
    "rent-or-buy": ("rent-or-buy.html", 1280, "light"),
}
HEIGHT = 900
SETTLED_MS = 1500


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a server of the site on this machine."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def take(browser: Browser, address: str, name: str, folder: Path) -> None:
    """One picture of the first screen of a page."""
    page_name, width, scheme = PICTURES[name]
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(f"{address}/{page_name}")
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=folder / f"{name}.png")
    context.close()


def main(site: Path, folder: Path) -> None:
    """Take every picture."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    folder.mkdir(parents=True, exist_ok=True)
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-background-networking"]
        )
        for name in PICTURES:
            take(browser, address, name, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
