"""Takes the pictures of docs/images from a built site, in a real Chromium: `make screenshots`.

python tests/integration/screenshots.py SITE docs/images

The same site gives the same pictures on every machine: all text is in one font that a dependency
brings, charts are the static ones, nothing moves, and the clock's zone and language are set.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Browser, Page

sys.path.insert(0, str(Path(__file__).parents[1]))

import accessibility
import snapshots
from browsed_site import LOOKS, PRINT, Look, chromium, put_on, served, wait_until

# Picture name: page, and what is true of it as soon as it is whole.
PICTURES = {
    "home": ("index.html", "true"),
    "model": ("models/mnist-mlp.html", "true"),
    "machine": ("machines/epyc-vm-2.html", "true"),
    "calculator": (
        "calculator.html",
        "document.querySelector('[data-ec-calculator]').dataset.state === 'ready'",
    ),
}
_SCREEN, _PAPER = 900, 1131  # heights: a window, and A4 of the print's width
_MOST_BYTES = 4_000_000


def opened(browser: Browser, address: str, name: str) -> Page:
    """A page that holds still, in the pictures' font."""
    uri, whole = PICTURES[name]
    context = browser.new_context(
        viewport={"width": 1280, "height": _SCREEN},
        bypass_csp=True,
        locale="en-US",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.add_init_script(snapshots.SCRIPT)
    page.goto(address + uri)
    accessibility.hold_still(page)
    snapshots.in_one_font(page)
    wait_until(page, whole)
    return page


def take(page: Page, look: Look, path: Path) -> int:
    """One picture of the first screen of a page; its size in bytes."""
    put_on(page, look)
    height = _PAPER if look == PRINT else _SCREEN
    page.set_viewport_size({"width": look.width, "height": height})
    page.evaluate("scrollTo(0, 0)")
    return len(page.screenshot(path=path, animations="disabled"))


def main(site: Path, folder: Path) -> None:
    """Take every picture in every look: "home-dark", but "home" where it is light."""
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    with served(site) as address, chromium() as browser:
        for name in PICTURES:
            page = opened(browser, address, name)
            for look in LOOKS:
                suffix = "" if look.name == "light" else f"-{look.name}"
                total += take(page, look, folder / f"{name}{suffix}.png")
            page.context.close()
    sys.stdout.write(f"{len(PICTURES) * len(LOOKS)} pictures, {total / 1e6:.1f} MB, in {folder}\n")
    if total > _MOST_BYTES:
        sys.exit(f"demanded at most {_MOST_BYTES / 1e6:g} MB of pictures; got {total / 1e6:.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
