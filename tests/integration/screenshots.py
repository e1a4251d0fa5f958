"""Takes the pictures of docs/images from a built site, in a real Chromium: `make screenshots`.

python tests/integration/screenshots.py SITE docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parents[1]))

from browsed_site import LOOKS, Look, chromium, put_on, served

# Picture name: page.
PICTURES = {
    "home": "index.html",
    "model": "models/mnist-mlp.html",
    "machine": "machines/epyc-vm-2.html",
    "calculator": "calculator.html",
}
SETTLED_MS = 1500


def take(browser: Browser, address: str, name: str, look: Look, folder: Path) -> None:
    """One picture of the first screen of a page; "home-dark", but "home" where it is light."""
    context = browser.new_context(viewport={"width": look.width, "height": 900})
    page = context.new_page()
    page.goto(address + PICTURES[name])
    put_on(page, look)
    page.wait_for_timeout(SETTLED_MS)
    suffix = "" if look.name == "light" else f"-{look.name}"
    page.screenshot(path=folder / f"{name}{suffix}.png")
    context.close()


def main(site: Path, folder: Path) -> None:
    """Take every picture in every look."""
    folder.mkdir(parents=True, exist_ok=True)
    with served(site) as address, chromium() as browser:
        for name in PICTURES:
            for look in LOOKS:
                take(browser, address, name, look, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
