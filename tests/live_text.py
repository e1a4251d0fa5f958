"""Finds active text of specs in a built site: pages, drawings, data, search index and feeds.

Hostile text contains ``hax`` wherever it would act if it were markup: in an element's name, a
handler, an address, a script, or Markdown. As plain text ``hax`` may stand anywhere.
"""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# What Jinja would make of the product in a hostile text, and the first words of a file it names.
COMPUTED, INCLUDED = "42055007", "root:x:0:0"
_ADDRESSES = {"href", "src", "action", "formaction", "srcset", "poster", "cite"}
_SCHEMES = {"", "http", "https"}
_MEANT = {"style", "class", "rel", "target", "srcdoc", "http-equiv", "name", "type"}
_FOREIGN = {"base", "object", "embed", "applet", "frame", "frameset", "plaintext", "xmp"}
# Elements that marks of Markdown make.
_MARKED = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "code", "a", "li", "dt", "dd"),
    *("del", "ins", "sup", "sub", "mark", "kbd", "blockquote"),
}
_EXPRESSIONS = {"expr", "signal", "test", "calculate", "filter", "update", "init", "on"}
_DRAWN = {
    *("svg", "g", "path", "text", "rect", "line", "circle", "defs", "clipPath", "style"),
    *("title", "desc", "use", "linearGradient", "stop", "tspan", "mask", "image"),
}
_FORMULA = re.compile(r"[\s\u200b\ufeff]*[=+@\uff1d\uff0b\uff20]|[\t\r\n]|\s*-(?![\d.])")
_EMPTY = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"),
    *("track", "wbr"),
}


class _Page(HTMLParser):
    """Collects the active content of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.live: list[str] = []
        self._open: list[str] = []
        self._said: list[str] = []
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "hax" in tag or tag in _FOREIGN:
            self.live.append(f"<{tag}>")
        self.live += [
            f"<{tag} {name}={value!r:.80}>" for name, value in attrs if _acts(name, value)
        ]
        self._is_data = tag == "script" and "json" in (dict(attrs).get("type") or "")
        if tag not in _EMPTY:
            self._open.append(tag)
            self._said.append("")

    def handle_endtag(self, tag: str) -> None:
        while tag in self._open:
            ended, said = self._open.pop(), self._said.pop()
            if ended in _MARKED and said.strip() == "hax":
                self.live.append(f"<{ended}>hax")
            if ended == tag:
                break

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside in ("script", "style"):
            if "hax" in data and not self._is_data:
                self.live.append(f"{inside}: {data:.80}")
        elif self._said:
            self._said[-1] += data

    def handle_comment(self, data: str) -> None:
        if "hax" in data:
            self.live.append(f"<!--{data:.80}")


def _acts(name: str, value: str | None) -> bool:
    """Whether an attribute does something that no spec's text should do."""
    text = "".join(one for one in value or "" if one.isprintable() and not one.isspace())
    if name in _ADDRESSES:
        return _scheme(text) not in _SCHEMES and not text.startswith("data:image/")
    return name.startswith("on") or "hax" in name or (name in _MEANT and "hax" in text)


def _scheme(address: str) -> str:
    try:
        return urlsplit(address).scheme
    except ValueError:  # half an address of version 6
        return ""


def live_in_html(text: str) -> list[str]:
    """Active content of a page or of a fragment."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.live


def _in_svg(text: str) -> Iterator[str]:
    for element in ET.fromstring(text).iter():  # noqa: S314  what our own build drew
        tag = element.tag.rpartition("}")[2]
        if tag not in _DRAWN or (tag == "style" and "hax" in (element.text or "")):
            yield f"<{tag}>"
        for name, value in element.attrib.items():
            if _acts(name.rpartition("}")[2], value):
                yield f"<{tag} {name}={value!r:.80}>"


def _in_json(text: str) -> Iterator[str]:
    yield from _in_value(json.loads(text), "")


def _in_value(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _in_value(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _in_value(one, key)
    elif isinstance(value, str):
        links = key in ("href", "url") and _acts("href", value)
        if links or (key in _EXPRESSIONS and "hax" in value):
            yield f"{key}: {value:.80}"


def _in_search(text: str) -> Iterator[str]:
    """Texts of the search index are HTML that the theme inserts into the page."""
    for document in json.loads(text)["docs"]:
        for key in ("title", "text", "location"):
            yield from live_in_html(document[key])


_NAME = r'\["[\w./-]+"\]'
# Of the window itself, or of an object in it that several scripts fill.
_VARIABLE = rf"window\.\w+|window{_NAME}|\(window\.\w+ = window\.\w+ \|\| \{{\}}\){_NAME}"


def _in_script(text: str) -> Iterator[str]:
    """A script of data must assign one JSON value to one variable."""
    found = re.fullmatch(rf"(?:{_VARIABLE}) ?= ?(.*?);?\s*", text, re.DOTALL)
    try:
        yield from _in_json(found[1] if found else "")
    except json.JSONDecodeError:
        yield f"more than a value: {text:.80}"


def _in_csv(text: str) -> Iterator[str]:
    for row in csv.reader(text.splitlines(keepends=True)):
        yield from (cell[:80] for cell in row if _FORMULA.match(cell))


def _in_xml(text: str) -> Iterator[str]:
    """Each text of a feed may be read as HTML."""
    for element in ET.fromstring(text).iter():  # noqa: S314  what our own build wrote
        yield from live_in_html(element.text or "")


_READERS: dict[str, Callable[[str], Any]] = {
    ".html": live_in_html,
    ".svg": _in_svg,
    ".json": _in_json,
    ".csv": _in_csv,
    ".xml": _in_xml,
}


def live_in_site(site: Path) -> list[str]:
    """All active content of a built site, each with its file."""
    found = []
    for path in sorted(site.rglob("*.*")):
        name = path.relative_to(site).as_posix()
        reader = _READERS.get(path.suffix)
        if name == "search/search_index.json":
            reader = _in_search
        elif path.suffix == ".js" and name.startswith("data/"):
            reader = _in_script
        if reader is None or name.startswith("assets/javascripts/"):
            continue
        text = path.read_text("utf-8")
        found += [f"{name}: {one}" for one in reader(text)]
        found += [f"{name}: {said}" for said in (COMPUTED, INCLUDED) if said in text]
    return found
