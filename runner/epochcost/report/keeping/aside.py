"""Tables of plain cells become HTML here, past Python-Markdown's inline patterns.

Each cell of a table passes every pattern there is: that took four fifths of a generated page's
conversion. A table is taken aside where its cells hold nothing but text, entities, inline tags,
strong text and links; any other is left to Python-Markdown. The HTML is the same to the byte.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mkdocs.config.defaults import MkDocsConfig

# What keeps text from being Markdown, and the mark of a place, which no text of a page holds.
_UNSURE = re.compile(r"```|~~~|<!--|<pre|\t|\x7f")
_TABLE = re.compile(
    r"(?:(?<=\n\n)|\A)(?P<head>\|.*\|)\n(?P<rule>\|[-:| ]+\|)\n(?P<rows>(?:\|.*\|\n)+)(?=\n|\Z)"
)
_RULE = re.compile(r" *:?-+:? *")
_PLACE = re.compile(r"<p>\x7f([0-9]+)\x7f</p>")
_TAG = (
    r"</?(?:a|br|code|small|span|sub|sup)"
    r"(?: (?:aria-hidden|class|href|rel|title)=\"[^\"<>\[\]\\`{}!]*\")*>"
)
_WORDS = rf"(?>[^\n\\`*_{{}}\[\]<>&|]++|&\#[0-9]++;|&[a-z]++;|{_TAG})"
_STRONG = rf"\*\*(?! )({_WORDS}++)(?<! )\*\*"
_LINK = rf"(?<!!)\[({_WORDS}++)\]\(([\w./#-]++)\)"
_MARKED = re.compile(f"{_STRONG}|{_LINK}", re.ASCII)
_PLAIN = re.compile(f"(?>{_WORDS}|{_STRONG}|{_LINK})*+", re.ASCII)

# The address as the page's HTML has it, of one as the Markdown has it.
Leading = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Aside:
    """A page's Markdown without its tables of plain cells, and their HTML in order."""

    markdown: str
    tables: tuple[str, ...] = ()

    def back(self, content: str) -> str:
        """The page's HTML with the tables in their places."""
        return _PLACE.sub(lambda found: self.tables[int(found[1])], content)


def aside(markdown: str, config: MkDocsConfig, leading: Leading) -> Aside:
    """Take the tables of plain cells out of a page that templates have made.

    The configuration has no extensions but those of `conversion`, of which only `abbr` reads words.
    """
    shaped = "abbr" in config.markdown_extensions or "tables" in config.mdx_configs
    if shaped or _UNSURE.search(markdown):
        return Aside(markdown)
    tables: list[str] = []

    def placed(found: re.Match[str]) -> str:
        made = _table(found["head"], found["rule"], found["rows"].splitlines(), leading)
        if made is None:
            return found.group()
        tables.append(made)
        return f"\x7f{len(tables) - 1}\x7f\n"

    return Aside(_TABLE.sub(placed, markdown), tuple(tables))


def _table(head: str, rule: str, rows: Iterable[str], leading: Leading) -> str | None:
    """The HTML of a table as Python-Markdown writes it; None where a cell is not plain."""
    rules = rule[1:-1].split("|")
    lines = [[cell.strip(" ") for cell in row[1:-1].split("|")] for row in (head, *rows)]
    if not all(_RULE.fullmatch(one) for one in rules) or len(rules) < 2:
        return None
    if not all(len(line) == len(rules) and all(map(_PLAIN.fullmatch, line)) for line in lines):
        return None
    styles = [_style(one.strip()) for one in rules]

    def row(tag: str, line: Iterable[str]) -> str:
        cells = zip(styles, line, strict=True)
        inside = (f"<{tag}{style}>{_cell(cell, leading)}</{tag}>\n" for style, cell in cells)
        return f"<tr>\n{''.join(inside)}</tr>\n"

    body = "".join(row("td", line) for line in lines[1:])
    return f"<table>\n<thead>\n{row('th', lines[0])}</thead>\n<tbody>\n{body}</tbody>\n</table>"


def _style(rule: str) -> str:
    sides = {(True, True): "center", (True, False): "left", (False, True): "right"}
    side = sides.get((rule.startswith(":"), rule.endswith(":")))
    return f' style="text-align: {side};"' if side else ""


def _cell(cell: str, leading: Leading) -> str:
    def made(found: re.Match[str]) -> str:
        strong, label, address = found.groups()
        if strong is not None:
            return f"<strong>{strong}</strong>"
        return f'<a href="{html.escape(leading(address))}">{label}</a>'

    return _MARKED.sub(made, cell)
