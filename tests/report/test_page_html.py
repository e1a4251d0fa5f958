"""Tables that are cut out of a page's Markdown and inserted into its HTML."""

from __future__ import annotations

import pytest

from epochcost.report.page_html import cut_tables, insert_tables

_TABLES = ["<table><tr><td>*a*</td></tr></table>", '<table class="b">\n\n<tr></tr>\n</table>']


@pytest.mark.parametrize("tables", [_TABLES, []], ids=["two", "none"])
def test_tables_return_to_their_places(tables: list[str]) -> None:
    """The page without tables has a place for each; inserted tables are unchanged."""
    page = "\n\n".join(("# Costs", *tables, "End."))
    text, cut = cut_tables(page)
    assert cut == tables
    assert "<table" not in text
    assert insert_tables(text, cut) == page
