"""Tables of plain cells and figures become HTML here, past Python-Markdown's inline patterns.

Each cell of a table passes every pattern there is: that took four fifths of a generated page's
conversion. A table is taken aside where its cells hold nothing but text, entities, inline tags,
strong text and links, and so are figures and legends as the templates' macros write them; any other
is left to Python-Markdown. The HTML is the same to the byte.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mkdocs.config.defaults import MkDocsConfig

# What keeps text from being Markdown, and the mark of a place, which no text of a page holds.
_UNSURE = re.compile(r"```|~~~|<!--|<pre|\t|\x7f")
_TABLE = re.compile(
    r"(?:(?<=\n\n)|\A)(?P<head>\|.*\|)\n(?P<rule>\|[-:| ]+\|)\n(?P<rows>(?:\|.*\|\n)+)(?=\n|\Z)"
)
_RULE = re.compile(r" *:?-+:? *")
_PLACE = re.compile(r"<p>\x7f[0-9]+\x7f</p>|\x7f[0-9]+\x7f")
_TAG = (
    r"</?(?:a|br|code|small|span|strong|sub|sup)"
    r"(?: (?:aria-hidden|class|href|rel|title)=\"[^\"<>\[\]\\`{}!]*\")*>"
)
_WORDS = rf"(?>[^\n\\`*_{{}}\[\]<>&|]++|&\#[0-9]++;|&[a-z]++;|{_TAG})"
_STRONG = rf"\*\*(?! )({_WORDS}++)(?<! )\*\*"
_LINK = rf"(?<!!)\[({_WORDS}++)\]\(([\w./#-]++)\)"
_MARKED = re.compile(f"{_STRONG}|{_LINK}", re.ASCII)
_PLAIN = re.compile(f"(?>{_WORDS}|{_STRONG}|{_LINK})*+", re.ASCII)
# What the macros `figure` and `legend` write.
_FIGURE = re.compile(
    r"""(?:(?<=\n\n)|\A)<figure class="ec-figure" id="(?P<id>[\w./-]+)" markdown="1">\n"""
    rf"""(?P<caption><figcaption>{_WORDS}*+</figcaption>)\n"""
    r"""(?P<plot><div class="ec-plot" data-ec-figure="[\w./-]+"></div>)\n\n"""
    r"""<div class="ec-tools" markdown="1">\n(?P<tools>[^\n]*)\n</div>\n\n"""
    rf"""<details class="ec-data">(?P<summary><summary>{_WORDS}*+</summary>)"""
    r"""(?P<table><div class="ec-table" data-ec-table="[\w./-]+"></div>)</details>\n"""
    r"""</figure>\n(?=\n|\Z)""",
    re.ASCII,
)
_TOOL = re.compile(rf"{_LINK}(?:\{{: download=\"([\w./-]+)\" \}})?", re.ASCII)
_TOOLS = re.compile(rf"(?>{_WORDS}|{_TOOL.pattern})*+", re.ASCII)
_LEGEND = re.compile(rf"""(?<=\n<p class="ec-legend">)({_WORDS}++)(?=</p>\n)""", re.ASCII)

# The address as the page's HTML has it, of one as the Markdown has it.
Leading = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Aside:
    """A page's Markdown without what is taken aside, the HTML of that by its mark, and anchors."""

    markdown: str
    blocks: Mapping[str, str]
    anchors: frozenset[str] = frozenset()

    def back(self, content: str) -> str | None:
        """The page's HTML with all in its place; None where a mark did not become a paragraph.

        In HTML that a template does not open to Markdown, a table is no table.
        """
        if sorted(_PLACE.findall(content)) != sorted(self.blocks):
            return None
        return _PLACE.sub(lambda found: self.blocks[found.group()], content)


def aside(markdown: str, config: MkDocsConfig, leading: Leading) -> Aside:
    """Take tables of plain cells, figures and legends out of a page that templates have made.

    The configuration has no extensions but those of `conversion`, of which only `abbr` reads words.
    """
    shaped = "abbr" in config.markdown_extensions or "tables" in config.mdx_configs
    if shaped or _UNSURE.search(markdown):
        return Aside(markdown, {})
    blocks: dict[str, str] = {}
    anchors = {found["id"] for found in _FIGURE.finditer(markdown)}

    def block(found: re.Match[str], made: str | None) -> str:
        if made is None:
            return found.group()
        mark = f"\x7f{len(blocks)}\x7f"
        blocks[f"<p>{mark}</p>"] = made
        return f"{mark}\n"

    def words(found: re.Match[str]) -> str:
        mark = f"\x7f{len(blocks)}\x7f"
        blocks[mark] = found.group()
        return mark

    markdown = _FIGURE.sub(lambda found: block(found, _figure(found, leading)), markdown)
    markdown = _LEGEND.sub(words, markdown)
    markdown = _TABLE.sub(lambda found: block(found, _table(found, leading)), markdown)
    return Aside(markdown, blocks, frozenset(anchors))


def _figure(found: re.Match[str], leading: Leading) -> str | None:
    """The HTML of a figure; None where what stands below its chart is not plain."""
    if not _TOOLS.fullmatch(found["tools"]):
        return None

    def tool(link: re.Match[str]) -> str:
        label, address, name = link.groups()
        download = f'download="{name}" ' if name else ""
        return f'<a {download}href="{html.escape(leading(address))}">{label}</a>'

    return (
        f'<figure class="ec-figure" id="{found["id"]}">\n{found["caption"]}\n{found["plot"]}\n'
        f'<div class="ec-tools">\n<p>{_TOOL.sub(tool, found["tools"])}</p>\n</div>\n'
        f'<details class="ec-data">\n{found["summary"]}\n{found["table"]}\n</details>\n</figure>'
    )


def _table(found: re.Match[str], leading: Leading) -> str | None:
    """The HTML of a table as Python-Markdown writes it; None where a cell is not plain."""
    rules = found["rule"][1:-1].split("|")
    rows = (found["head"], *found["rows"].splitlines())
    lines = [[cell.strip(" ") for cell in row[1:-1].split("|")] for row in rows]
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
