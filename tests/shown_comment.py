"""A comment as GitHub shows it: Markdown first, then what GitHub looks for in the text.

The order matters: an entity that Markdown has resolved is a character again when people, issues and
addresses are looked for. Inside code nothing is.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

# What the comment's own lines are made of; nothing of it refers to anything.
_OWN = {"p", "h3", "strong", "br", "span", "code", "pre", "details", "summary", "ul", "li"}
_TABLE = {"table", "thead", "tbody", "tr", "th", "td"}
_QUIET = {"code", "pre"}
_FOUND_LATER = re.compile(
    r"@[a-z0-9]|#[0-9]|\bgh-[0-9]|[a-z]://|www\.[a-z]|:[a-z0-9_+-]+:|\$[^$]*\$", re.IGNORECASE
)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.live: list[str] = []
        self.text = ""
        self._quiet = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {("open", ""), ("open", None), ("style", "text-align:right")}
        if tag not in _OWN | _TABLE or not set(attrs) <= known:
            self.live.append(f"<{tag} {attrs}>")
        self._quiet += tag in _QUIET

    def handle_endtag(self, tag: str) -> None:
        self._quiet -= tag in _QUIET

    def handle_data(self, data: str) -> None:
        self.text += data
        if not self._quiet:
            self.live += [found[0] for found in _FOUND_LATER.finditer(data)]


def shown(text: str) -> tuple[str, list[str]]:
    """What a reader sees of a comment after its marker, and whatever in it is alive."""
    page = _Page()
    page.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
    page.close()
    return page.text.replace("\u200b", ""), page.live
