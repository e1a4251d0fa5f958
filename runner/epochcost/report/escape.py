"""Escape text from specs and results; Jinja calls `markdown_text` on every printed value."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

# Bidirectional overrides and isolates could make a name read as another; the rest is unprintable.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BLANKS = re.compile(r"\s+")
_SPECIAL = re.compile(r"""[\\`*_{}\[\]()#!|~^<>&"'$@]|(?<![A-Za-z0-9])[-+.:=]|[-+.:=](?!\w)""")
# An address, or a repository of GitHub at a commit.
_LINK = re.compile(
    r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:)\]]"
    r"|(?<![\w./-])(?P<repository>[\w-]+/[\w.-]+)@(?P<commit>[0-9a-f]{40})\b"
)
# A commit outside of addresses; readers compare its first digits.
_COMMIT = re.compile(r"(?<![\w/])([0-9a-f]{8})[0-9a-f]{32}(?![\w/])")
_TITLE = str.maketrans({"<": "\u2039", ">": "\u203a", '"': "\u201d", "&": "\uff06"})


def one_line(text: str) -> str:
    """Make a single line of a text, without unprintable or direction-changing characters."""
    return _unstripped_line(text).strip()


def _unstripped_line(text: str) -> str:
    # Blanks at the ends stay, since they may separate words on a page.
    return _UNPRINTABLE.sub("", _BLANKS.sub(" ", text))


def _entities(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"&#{ord(match.group())};", text)


def markdown_text(value: Any) -> Any:
    """Escape a string so that Markdown and HTML show it literally; keep other values."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return Markup(_entities(_unstripped_line(value)))  # noqa: S704  this is the escaping itself


def page_title(text: str) -> str:
    """Replace markup in a title by similar characters, because the theme undoes any escaping."""
    return one_line(text).translate(_TITLE)


def with_links(text: str) -> Markup:
    """Turn addresses and GitHub commits in a text into links; shorten commits, escape the rest."""
    line, escaped, end = one_line(text), "", 0
    for match in _LINK.finditer(line):
        escaped += _entities(line[end : match.start()]) + _anchor(match)
        end = match.end()
    escaped += _entities(line[end:])
    shortened = _COMMIT.sub(r"\1", escaped)
    return Markup(f'<span class="ec-source">{shortened}</span>')  # noqa: S704  each part is escaped


def _anchor(match: re.Match[str]) -> str:
    url, repository, commit = match.group(), match["repository"], match["commit"]
    if repository:
        url, label = f"https://github.com/{repository}/tree/{commit}", f"{repository}@{commit[:8]}"
    else:
        address = url.split("://", 1)[1]
        label = address if len(address) <= 48 else f"{address.split('/', 1)[0][:48]}/…"
    return f'<a href="{_entities(url)}" rel="noopener">{_entities(label)}</a>'
