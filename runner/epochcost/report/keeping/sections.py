"""What of a page's HTML the search index shows: all but the sections that are left out of it.

Material's search reads every tag of a page, in Python, and then drops the sections whose heading
says so. They are cut out here before it reads: of the page of a machine that is nine tenths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*)(?P<rest>(?:[^>"']++|"[^"]*"|'[^']*')*+)>"""
)
# What is read by other rules than tags are.
_UNLIKE = re.compile(r"<(?:[!?]|(?:script|style|title|textarea|xmp|iframe)\b)", re.IGNORECASE)
_WITHOUT_END = frozenset(
    [
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr"),
    ]
)
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
_ID = re.compile(r"\sid=")
_LEFT_OUT = re.compile(r"\sdata-search-exclude(?![\w-])")


@dataclass(frozen=True, slots=True)
class _Heading:
    """Where a heading begins, in how many elements it stands, whether its section is left out."""

    at: int
    depth: int
    left_out: bool


def shown(content: str) -> str:
    """The HTML without the sections that are left out, or all of it where tags do not match.

    A section is cut where it begins and ends outside of every element and another goes before it:
    what the search says of all other sections is then the same.
    """
    headings = _headings(content)
    if headings is None or not headings:
        return content
    parts, kept_from = [], 0
    for first, following in _left_out(headings):
        parts.append(content[kept_from:first])
        kept_from = following if following is not None else len(content)
    return "".join([*parts, content[kept_from:]])


def _left_out(headings: list[_Heading]) -> Iterator[tuple[int, int | None]]:
    """Where sections that can be cut begin and end; None: with the page."""
    outer = [at for at, heading in enumerate(headings) if heading.depth == 0]
    for at, following in zip(outer, [*outer, None][1:], strict=True):
        inside = headings[at:following]
        if at > 0 and all(heading.left_out for heading in inside):
            yield inside[0].at, None if following is None else headings[following].at


def _headings(content: str) -> list[_Heading] | None:
    """The headings that begin sections; None where an end does not match its beginning."""
    if _UNLIKE.search(content):
        return None
    headings: list[_Heading] = []
    within: list[str] = []
    for found in _TAG.finditer(content):
        end, name, rest = found.groups()
        if end:
            if not within or within.pop() != name:
                return None
        elif name not in _WITHOUT_END:
            if name in _HEADINGS and _ID.search(rest):
                left_out = _LEFT_OUT.search(rest) is not None
                headings.append(_Heading(found.start(), len(within), left_out))
            if not rest.endswith("/"):
                within.append(name)
    return None if within else headings
