"""Take the pictures of docs/images from a built site, in Chromium: `make screenshots`.

    python tests/integration/screenshots.py SITE docs/images

The same site gives the same pictures on every machine: one font from a dependency, static charts,
no animation, fixed time zone and language.
"""

from __future__ import annotations

import base64
import sys
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import Browser, Page

sys.path.insert(0, str(Path(__file__).parents[1]))

import accessibility
from browsed_site import LOOKS, PRINT, Look, chromium, put_on, served, wait_until

# Picture name: page, and a condition that holds when it is loaded.
PICTURES = {
    "home": ("index.html", "true"),
    "model": ("models/resnet50.html", "true"),
    "machine": ("machines/g5.xlarge.html", "true"),
    "calculator": (
        "calculator.html",
        "document.querySelector('[data-ec-calculator]').dataset.state === 'ready'",
    ),
}
_SCREEN, _PAPER = 900, 1131  # heights: a window, and A4 of the print's width
_MOST_BYTES = 4_000_000
_FONTS = {"normal": "lato-normal.woff2", "bold": "lato-bold.woff2"}
# Charts become interactive in view; here none ever does.
_NOTHING_SEEN = """window.IntersectionObserver = class {
  observe() {} unobserve() {} disconnect() {}
};"""


def opened(browser: Browser, address: str, name: str) -> Page:
    """A page without motion, in the pictures' font."""
    uri, whole = PICTURES[name]
    context = browser.new_context(
        viewport={"width": 1280, "height": _SCREEN},
        bypass_csp=True,
        locale="en-US",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.add_init_script(_NOTHING_SEEN)
    page.goto(address + uri)
    accessibility.hold_still(page)
    _in_one_font(page)
    wait_until(page, whole)
    return page


def _in_one_font(page: Page) -> None:
    """Draw all text of a page in the font of the pictures."""
    faces = (
        f"@font-face {{ font-family: Snapshot; font-weight: {weight}; "
        f"src: url({_data('font/woff2', _font(name))}); }}"
        for weight, name in _FONTS.items()
    )
    page.add_style_tag(content=" ".join([*faces, "* { font-family: Snapshot !important; }"]))
    page.evaluate("document.fonts.ready.then(() => null)")


def _font(name: str) -> bytes:
    return files("mkdocs").joinpath("themes", "readthedocs", "css", "fonts", name).read_bytes()


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def take(page: Page, look: Look, path: Path) -> int:
    """Take a picture of a page's first screen; returns its size in bytes."""
    put_on(page, look)
    height = _PAPER if look == PRINT else _SCREEN
    page.set_viewport_size({"width": look.width, "height": height})
    page.evaluate("scrollTo(0, 0)")
    return len(page.screenshot(path=path, animations="disabled"))


def main(site: Path, folder: Path) -> None:
    """Take every picture in every look: "home-dark", and "home" for light."""
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
        sys.exit(f"expected at most {_MOST_BYTES / 1e6:g} MB of pictures, got {total / 1e6:.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
