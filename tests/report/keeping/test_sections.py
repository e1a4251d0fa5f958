"""What the search says of a page is the same whether or not it reads the sections it leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from material.plugins.search.plugin import SearchIndex

from epochcost.report.keeping.sections import shown

_PIECES = st.sampled_from(
    [
        *('<h1 id="{}">Title</h1>', '<h2 id="{}">Shown<a class="headerlink" href="#x">¶</a></h2>'),
        *('<h2 data-search-exclude id="{}">Hidden</h2>', '<h3 id="{}" data-search-exclude>In</h3>'),
        *('<h3 id="{}">Deeper</h3>', "<h2>No section</h2>", "<h4 data-search-exclude>Plain</h4>"),
        *("<p>Words &amp; <code>code</code><br>more</p>", "\n", "loose ", "<img alt='a > b'>"),
        *(
            "<div>",
            "</div>",
            '<details data-search-exclude="true">',
            "</details>",
            "<ul><li>One</ul>",
        ),
        *('<div class="linenodiv">', "<table><tr><td>A cell</td></tr></table>", "<!-- <h2> -->"),
        *("<script>if (a<b) c</script>", "<div/>", "<pre>  kept\n</pre>"),
    ]
)


def _entries(content: str) -> list[Any]:
    index = SearchIndex(lang=["en"], separator="", pipeline=[], fields={})
    index.add_entry_from_context(
        SimpleNamespace(content=content, meta={}, toc=[], url="page.html", title="Page")
    )
    return list(index.entries)


@settings(max_examples=60)
@given(st.lists(_PIECES, max_size=14))
def test_the_same_is_said_of_what_is_shown(pieces: list[str]) -> None:
    """Whatever is nested in whatever, and where elements do not end."""
    content = "".join(piece.format(at) for at, piece in enumerate(pieces))
    assert _entries(shown(content)) == _entries(content)


def test_sections_that_are_left_out_are_cut() -> None:
    """With all that stands below their heading; the first section stays."""
    hidden = (
        '<h2 data-search-exclude id="b">B</h2>\n<div><h3 data-search-exclude id="c">C</h3></div>'
    )
    table = "<table><tr><td>A cell</td></tr></table>\n"
    content = f'<h1 id="a">A</h1>\n{table}{hidden}{table}<h2 id="d">D</h2>\n{table}{hidden}'
    assert shown(content) == f'<h1 id="a">A</h1>\n{table}<h2 id="d">D</h2>\n{table}'
    assert shown(hidden) == hidden
