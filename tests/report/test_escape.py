"""Text from specs is shown literally, everywhere on a page."""

from __future__ import annotations

import html
import re

import markdown
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.report.escape import markdown_text, one_line, page_title, with_links
from report_project import cells
from report_specs import HOSTILE

_EXTENSIONS = ["admonition", "attr_list", "md_in_html", "tables", "toc"]


def displayed(source: str) -> str:
    """The displayed text of a page."""
    page = markdown.markdown(source, extensions=_EXTENSIONS)
    return html.unescape(re.sub(r"<[^>]+>", "", page)).strip()


@given(st.text(min_size=1, max_size=60))
def test_a_paragraph_shows_exactly_the_text(text: str) -> None:
    """An escaped text is shown literally, whatever its characters."""
    assert displayed(str(markdown_text(text))) == one_line(text)


@given(st.text(alphabet="|`*_[](){}<>#!-+.:=~ ab1\n", min_size=1, max_size=40))
def test_a_table_cell_shows_exactly_the_text(text: str) -> None:
    """A cell of an HTML table within Markdown shows the escaped text literally."""
    row = f"<tr><td>x{markdown_text(text)}x</td> <td>end</td></tr>"
    page = markdown.markdown(f"a\n\n<table>\n{row}\n</table>\n\nb", extensions=_EXTENSIONS)
    texts = [html.unescape(cell) for cell in cells(page)]
    assert texts == [f"x{one_line_with_ends(text)}x", "end"]


def one_line_with_ends(text: str) -> str:
    """Make a text one line as `one_line` does, but keep blanks at the ends."""
    return re.sub(r"\s+", " ", text)


def test_hostile_text_makes_no_element() -> None:
    """A script in a heading is shown as text."""
    page = markdown.markdown(f"# {markdown_text(HOSTILE)}", extensions=_EXTENSIONS)
    assert not re.search(r"<(script|img|a|strong|code)", page)


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200f", "\x00", "\x9b"])
def test_direction_and_control_characters_are_dropped(character: str) -> None:
    """Characters that could make a name look like another name are removed."""
    assert one_line(f"a{character}b") == "ab"


def test_titles_survive_being_unescaped() -> None:
    """A title contains no markup even after Material resolves its entities."""
    title = page_title(f"{HOSTILE} &lt;script&gt;")
    assert not set('<>"&') & set(html.unescape(title))


def test_only_web_addresses_become_links() -> None:
    """Addresses with http and https become links; other schemes stay text."""
    source = "see https://a.example/x_y?q=1&z=2, (http://b.example/c). javascript:hack() data:x"
    page = markdown.markdown(str(with_links(source)))
    links = [html.unescape(link) for link in re.findall(r'href="([^"]*)"', page)]
    assert links == ["https://a.example/x_y?q=1&z=2", "http://b.example/c"]
    assert displayed(str(with_links(source))) == (
        "see a.example/x_y?q=1&z=2, (b.example/c). javascript:hack() data:x"
    )
