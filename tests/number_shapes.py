"""Search the visible text of a built site for numbers and words that no reader should meet.

    python tests/number_shapes.py SITE

Prints a line for each fault; exits with 1 if there is a fault. Visible texts are those of pages,
pages to embed, tables and charts, and the attributes that browsers show or read aloud.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_HIDDEN = {"script", "style", "template"}
_CODE = {"code", "pre", "kbd", "samp"}
_PROSE = {"p", "li", "h1", "h2", "h3", "h4", "figcaption", "summary", "caption"}
# Elements whose text continues the text around them.
_INLINE = {"a", "abbr", "b", "em", "i", "small", "span", "strong", "sub", "sup", "tspan", "wbr"}
_ATTRIBUTES = {"alt", "aria-label", "placeholder", "title"}
_EMPTY = {"br", "hr", "img", "input", "link", "meta", "source", "wbr", "path", "rect", "circle"}
_COUNTED = "GPUs|hours|jobs|machines|models|prices|requests|times|tokens|examples|epochs|days"
# Shapes in any text.
_ANYWHERE = {
    "full commit id": r"(?<![\w/])[0-9a-f]{40}(?![\w/])",
    "time with seconds": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d",
}
# Shapes in text that is no code.
_IN_WORDS = {
    # 8.63e10 operations are usual in the literature, 1e-4 in settings, 1.4e-07 as a relative error.
    "power of ten": r"(?<![\w#])\d+(?:\.\d+)?(?:E[+-]?\d|e\+|e-\d\d [A-Za-zµ%])",
    "amount with a power of ten": r"[$€£]\d[\d.]*e",
    "interval wider than its value": r"± [\d,]{3,}(?:\.\d+)? %",
    "factor below a tenth": r"\b0\.0\d+ times\b",
    "range of one value": r"(?<![\d.,])([$€£]\d[\d.,]*|\d[\d.,]* [A-Za-zµ%]+) to \1(?![\d.,\w])",
    "doubled bracket": r"\(\(|\)\)",
    "once": r"(?<![\d.,])1(?:\.0+)? times\b",
    "plural of 1": rf"(?<![\w.,$€£-])1 (?:{_COUNTED})\b",
    "space before a mark": r"\w [,;.](?= |$)",
    "doubled mark": r"[,;:] ?[,;:.](?= |$)|(?<!\.)\.\.(?!\.)",
    "value of a program": r"(?<![\w-])(?:None(?! of)|nan|NaN|inf|-?Infinity|undefined)(?![\w-])",
}
# Whole amounts, such as a list price of a machine, may be exact.
_AMOUNT = re.compile(r"[$€£](\d[\d,]*\.\d+)")
_DIGITS = 4
# Characters that a fault shows on each side.
_CONTEXT = 40


class _Texts(HTMLParser):
    """Collects the faults of a page's visible texts, each once. Code is a separate text."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, None] = {}
        self._open: list[str] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        shown = {name: value for name, value in attrs if name in _ATTRIBUTES and value}
        if tag == "meta" and values.get("name") == "description":
            shown["content"] = values.get("content") or ""
        for value in shown.values():
            self._add(faults_of_text(" ".join((value or "").split())))
        if tag not in _INLINE | _CODE:
            self._end()
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            return
        if tag not in _INLINE | _CODE:
            self._end()
        while self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not _HIDDEN & set(self._open):
            code = bool(_CODE & set(self._open))
            self._text += "\ufffc" if code else data
            if code:
                self._add(faults_of_text(data, code=True))

    def close(self) -> None:
        super().close()
        self._end()

    def _end(self) -> None:
        prose = bool(_PROSE & set(self._open)) and "table" not in self._open
        self._add(faults_of_text(" ".join(self._text.split()), prose=prose))
        self._text = ""

    def _add(self, faults: Iterator[str]) -> None:
        self.faults.update(dict.fromkeys(faults))


def faults_of_text(text: str, *, prose: bool = False, code: bool = False) -> Iterator[str]:
    """Yield the faults of a text without line breaks. Amounts in prose must be rounded."""
    for name, shape in (_ANYWHERE if code else _ANYWHERE | _IN_WORDS).items():
        for match in re.finditer(shape, text):
            yield f"{name}: {_around(match)}"
    for match in _AMOUNT.finditer(text) if prose else ():
        if len(re.sub("[,.]", "", match[1]).strip("0")) > _DIGITS:
            yield f"more than {_DIGITS} digits: {_around(match)}"


def _around(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - _CONTEXT) : match.end() + _CONTEXT]


def faults_of_page(page: str) -> list[str]:
    """Faults of a page's visible texts."""
    texts = _Texts()
    texts.feed(page)
    texts.close()
    return list(texts.faults)


def faults_of_site(site: Path) -> Iterator[str]:
    """Faults of every page, and of every chart as a picture."""
    for path in sorted((*site.rglob("*.html"), *site.rglob("*.svg"))):
        for fault in faults_of_page(path.read_text("utf-8")):
            yield f"{path.relative_to(site).as_posix()}: {fault}"


if __name__ == "__main__":
    lines = list(faults_of_site(Path(sys.argv[1])))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.exit(1 if lines else 0)
