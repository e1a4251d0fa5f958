"""A comment as GitHub shows it: Markdown is rendered, then mentions and links are searched.

Entities are resolved by Markdown before the search, so a resolved entity may be part of a mention.
Code is not searched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from epochcost.cli.request_comment import MARKER

# The elements of the comment's own lines; none of them refers to anything.
_OWN = {"p", "h3", "strong", "br", "code", "details", "summary", "ul", "li"}
_TABLE = {"table", "thead", "tbody", "tr", "th", "td"}
_ATTRIBUTES = {("open", ""), ("open", None), ("style", "text-align:right")}
_FOUND_LATER = re.compile(
    r"@[a-z0-9]|#[0-9]|\bgh-[0-9]|[a-z]://|www\.[a-z]|:[a-z0-9_+-]+:|\$|\b[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@dataclass
class ShownComment:
    """A comment's text, its pieces of code, the text around them, and its active content."""

    text: str = ""
    codes: list[str] = field(default_factory=list)
    frame: str = ""
    live: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.shown = ShownComment()
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._is_code or tag not in _OWN | _TABLE or not set(attrs) <= _ATTRIBUTES:
            self.shown.live.append(f"<{tag} {attrs}>")
        self.shown.frame += f"<{tag} {attrs}>"
        self._is_code = tag == "code"
        if self._is_code:
            self.shown.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_code = False
        self.shown.frame += f"</{tag}>"

    def handle_data(self, data: str) -> None:
        self.shown.text += data
        if self._is_code:
            self.shown.codes[-1] += data
        else:
            self.shown.frame += data
            self.shown.live += [match[0] for match in _FOUND_LATER.finditer(data)]

    def handle_comment(self, data: str) -> None:
        if f"<!--{data}-->" != MARKER:
            self.shown.live.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.shown.live.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.shown.live.append(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self.shown.live.append(f"<![{data}]>")


def shown(text: str) -> ShownComment:
    """Render ``text`` as a comment."""
    reader = _Reader()
    reader.feed(_MARKDOWN.render(text))
    reader.close()
    return reader.shown
