"""What is taken aside becomes what Python-Markdown makes of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown import Markdown
from markupsafe import Markup
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig

from epochcost.report.escape import markdown_text
from epochcost.report.keeping.aside import aside
from epochcost.report.templates import environment

ROOT = Path(__file__).parents[3]
_CONFIG = load_config(str(ROOT / "mkdocs.yml"))
_PLAIN = st.sampled_from(
    [
        *("word", "", " ", "1.5", ": ", "&#42;", "&nbsp;", "±", '"', "'", "=", "-", "+", "#"),
        *("**$0.53**", "**&#36;1 to 2**", "**a <small>b</small>**", "[a model](../models/x.md)"),
        *("[a <span>b</span>](x.md#part_1)", "[c](#d)", "<br>", "<small>", "</small>", "<code>"),
        *('<span class="ec-pm">', "</span>", "</code>", '<a href="&#104;ttp">', "</a>"),
    ]
)
_ODD = st.sampled_from(
    [
        *("*", "**", "_a_", "__", "`", "`a|b`", "[", "](", "](x)", ")", "![", "\\", "{: .x }", "{"),
        *("<", ">", "&", "<http://x.y>", "<b id='x'>", "<div>", "|", "~~", "^", "@", "***a***"),
        "!",
    ]
)
_RULES = st.sampled_from(["---", "---:", ":---", ":---:", "-", "::", ""])


_MARKDOWN = Markdown(extensions=_CONFIG.markdown_extensions, extension_configs=_CONFIG.mdx_configs)


def _whole(text: str) -> str:
    return _MARKDOWN.reset().convert(text)


def _apart(text: str, config: MkDocsConfig = _CONFIG) -> tuple[str | None, int]:
    """The HTML, None where it has no place for them, and how many blocks were taken aside."""
    made = aside(text, config, lambda address: address)
    return made.back(_whole(made.markdown)), len(made.blocks)


def _tables(
    pieces: st.SearchStrategy[str], rules: st.SearchStrategy[str], between: str = ""
) -> st.SearchStrategy[str]:
    cell = st.lists(pieces, max_size=5).map(between.join)
    line = st.lists(cell, min_size=2, max_size=2).map(lambda cells: f"| {' | '.join(cells)} |")
    rule = st.lists(rules, min_size=2, max_size=2).map(lambda cells: f"| {' | '.join(cells)} |")
    lines = st.tuples(line, rule, line, line).map("\n".join)
    return lines.map(lambda table: f"# Title\n\n{table}\n\nAfter [it](y.md).\n\n{table}\n")


@settings(max_examples=25)
@given(_tables(_PLAIN, st.sampled_from(["---", "---:", ":---:"]), " "))
def test_plain_cells_become_what_markdown_makes_of_them(text: str) -> None:
    """Text, entities, tags, strong text and links: taken aside, with the same HTML."""
    html, count = _apart(text)
    assert count == 2
    assert html == _whole(text)


@settings(max_examples=25)
@given(_tables(st.one_of(_PLAIN, _ODD), _RULES))
def test_any_other_cell_is_left_to_markdown(text: str) -> None:
    """Whatever stands in a cell, the HTML is that of Python-Markdown."""
    assert _apart(text)[0] == _whole(text)


@settings(max_examples=25)
@given(st.lists(st.text(max_size=12), min_size=2, max_size=2))
def test_any_text_of_a_spec_is_plain_once_escaped(texts: list[str]) -> None:
    """Text that a template prints keeps no table from being taken aside."""
    row = " | ".join(str(markdown_text(text)) for text in texts)
    text = f"| a | b |\n| --- | ---: |\n| {row} |\n"
    html, count = _apart(text)
    assert count == 1
    assert html == _whole(text)


def test_figures_and_legends_are_taken_as_the_macros_write_them() -> None:
    """Whatever a figure is called; one that is written in another way is left to Markdown."""
    made = environment(ROOT / "site_templates").from_string(
        '{% import "partials/macros.md.jinja" as m with context %}# A\n'
        '{{ m.figure(fig) }}{{ m.legend() }}<div markdown="1">\n{{ m.figure(fig) }}</div>\n'
    )
    fig = SimpleNamespace(id="a-1.b", title="A *b* <c>", description="[x](y) {: .z } `&` …")
    text = made.render(fig=fig, root=Markup("../"))
    html, count = _apart(text)
    assert count == 3
    assert html == _whole(text)
    other = text.replace("Download: ", "Download *all*: ")
    assert _apart(other) == (_whole(other), 1)
    assert aside(text, _CONFIG, str.upper).anchors == {"a-1.b"}


def test_tables_inside_other_blocks_stay_where_they_are() -> None:
    """In a fold a table is taken aside; in a fence, a comment or a sentence it is none."""
    table = "| a | b |\n| --- | --- |\n| c | d |\n"
    fold = f'<details markdown="1">\n<summary>Fold</summary>\n\n{table}\n</details>\n'
    assert _apart(fold) == (_whole(fold), 1)
    for text in (
        f"```\n\n{table}\n```\n",
        f"<!--\n\n{table}\n-->\n",
        f"Words\n{table}",
        table + "x",
    ):
        assert _apart(text) == (_whole(text), 0)
    for text in (f"<div>\n\n{table}\n</div>\n", f"<style>\n\n{table}\n</style>\n\n{table}"):
        assert _apart(text)[0] is None, "such a page is converted as a whole"


def test_an_extension_that_reads_words_leaves_nothing_aside() -> None:
    """Abbreviations may change any word of a cell."""
    config = load_config(str(ROOT / "mkdocs.yml"))
    config.markdown_extensions.append("abbr")
    text = "| a | b |\n| --- | --- |\n| c | d |\n"
    assert _apart(text, config)[1] == 0
