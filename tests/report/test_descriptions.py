"""The sentence by which a page describes itself to search engines and in previews of links."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from epochcost.report.page_html import first_sentence
from epochcost.report.pages.page import Report
from epochcost.report.plugin import EpochcostPlugin
from epochcost.report.site import PAGES


def test_each_generated_page_describes_its_own_answer(report: Report) -> None:
    """No two pages share a description; those of models and machines have an amount."""
    pages = [page for pages in PAGES.values() for page in pages(report)]
    described = {page.uri: page.description for page in pages}
    assert len(set(described.values())) == len(pages)
    assert "costs least on" in described["models/net.md"]
    assert "$" in described["models/net.md"]
    assert "costs $0.80 an hour on demand" in described["machines/box.md"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('<h1>A</h1><p class="ec-lead">One &amp; <code>two</code>.\nThree.</p>', "One & two."),
        (
            "<p>Old.</p><p><strong>Decision.</strong> Bills have lines. Why?</p>",
            "Bills have lines.",
        ),
        (
            "<p>Old.</p><p><strong>Decision.</strong></p>\n<ul>\n<li>Bills have lines. Why?</li>",
            "Bills have lines.",
        ),
        ("<h1>Nothing</h1>", ""),
    ],
)
def test_the_first_sentence_describes_a_written_page(content: str, sentence: str) -> None:
    """It is plain text; a decision record is described by its decision."""
    assert first_sentence(content) == sentence


@pytest.mark.parametrize(
    ("meta", "description"),
    [({}, "A \u2039fast\u203a way."), ({"description": "Mine."}, "Mine.")],
    ids=["none", "own"],
)
def test_a_written_page_keeps_its_own_description(meta: dict[str, Any], description: str) -> None:
    """A page without a description in its front matter gets its first sentence, without markup."""
    plugin = EpochcostPlugin()
    plugin._site = SimpleNamespace(sections={})  # type: ignore[assignment]
    page = SimpleNamespace(meta=meta, file=SimpleNamespace(src_uri="a.md"))
    content = "<p>A &lt;fast&gt; way. It is short.</p>"
    plugin.on_page_content(content, page=page, config=None, files=None)  # type: ignore[arg-type]
    assert page.meta["description"] == description
