"""Small pictures of pages, and how far two of them are apart.

Pages are drawn in one font that a dependency brings, with their static charts, so that a picture is
the same on every machine; each is kept at a quarter of its size, where the smoothing of a letter
no longer shows and a moved block does. `make snapshots` renews them.
"""

from __future__ import annotations

import base64
from importlib.resources import files
from typing import Any

from playwright.sync_api import Browser, Page

_FONTS = {"normal": "lato-normal.woff2", "bold": "lato-bold.woff2"}
# Charts become interactive when they come into view: here nothing ever does.
SCRIPT = """window.IntersectionObserver = class {
  observe() {} unobserve() {} disconnect() {}
};"""
_SMALLER = 4
# Of 255 in one channel; less is the smoothing of edges.
_VISIBLE = 48
_DRAW = """async ([png, smaller]) => {
  const image = await createImageBitmap(await (await fetch(png)).blob());
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.width / smaller);
  canvas.height = Math.round(image.height / smaller);
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}"""
_COMPARE = """async ([pngs, visible]) => {
  const pixels = await Promise.all(pngs.map(async png => {
    const image = await createImageBitmap(await (await fetch(png)).blob());
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  }));
  const [one, other] = pixels;
  if (one.width !== other.width || one.height !== other.height) { return 1; }
  let differ = 0;
  for (let at = 0; at < one.data.length; at += 4) {
    differ += [0, 1, 2].some(n => Math.abs(one.data[at + n] - other.data[at + n]) > visible);
  }
  return differ / (one.width * one.height);
}"""


def in_one_font(page: Page) -> None:
    """Draw all text of a page in the font of the pictures."""
    faces = (
        f"@font-face {{ font-family: Snapshot; font-weight: {weight}; "
        f"src: url({_data('font/woff2', _font(name))}); }}"
        for weight, name in _FONTS.items()
    )
    page.add_style_tag(content=" ".join([*faces, "* { font-family: Snapshot !important; }"]))
    page.evaluate("document.fonts.ready.then(() => null)")


def picture(browser: Browser, page: Page) -> bytes:
    """What a tab shows, as a PNG at a quarter of its size."""
    drawn = _asked(browser, _DRAW, [_data("image/png", page.screenshot()), _SMALLER])
    return base64.b64decode(drawn.split(",", 1)[1])


def apart(browser: Browser, one: bytes, other: bytes) -> float:
    """The share of two pictures' pixels that differ visibly; 1 for pictures of unlike sizes."""
    pictures = [_data("image/png", png) for png in (one, other)]
    return float(_asked(browser, _COMPARE, [pictures, _VISIBLE]))


def _asked(browser: Browser, script: str, argument: list[Any]) -> Any:
    """What a script answers in an empty tab, which no page's policy binds."""
    page = browser.new_page()
    try:
        return page.evaluate(script, argument)
    finally:
        page.close()


def _font(name: str) -> bytes:
    return files("mkdocs").joinpath("themes", "readthedocs", "css", "fonts", name).read_bytes()


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
