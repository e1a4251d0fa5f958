"""A page's Markdown is taken as it is kept only where its template is given the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from epochcost.report.keeping.rendering import KeptRendering
from epochcost.report.pages.page import Page
from epochcost.report.templates import environment

_PAGE = Page("a.md", "A", "a.md.jinja", {"amounts": [1, 2]})


def _templates(folder: Path, text: str = "{{ page.title }}: {{ amounts }}") -> Path:
    template = folder / "templates/pages/a.md.jinja"
    template.parent.mkdir(parents=True, exist_ok=True)
    template.write_text(text, encoding="utf-8")
    return folder / "templates"


def _rendered(folder: Path, page: Page) -> str:
    templates = folder / "templates"
    return KeptRendering.under(folder, templates)(environment(templates), page)


def test_a_page_is_rendered_once(tmp_path: Path) -> None:
    """What is kept is taken, whatever would be rendered now."""
    _templates(tmp_path)
    assert _rendered(tmp_path, _PAGE) == "A: [1, 2]\n"
    (kept,) = (tmp_path / "rendered").iterdir()
    before = kept.stat().st_mtime_ns
    assert _rendered(tmp_path, replace(_PAGE, context={"amounts": [1, 2]})) == "A: [1, 2]\n"
    assert kept.stat().st_mtime_ns == before


def test_another_value_or_template_is_rendered_anew(tmp_path: Path) -> None:
    """Each value of the context, each property of the page, each template."""
    _templates(tmp_path)
    _rendered(tmp_path, _PAGE)
    assert _rendered(tmp_path, replace(_PAGE, context={"amounts": [1, 3]})) == "A: [1, 3]\n"
    assert _rendered(tmp_path, replace(_PAGE, title="B")) == "B: [1, 2]\n"
    _templates(tmp_path, "Another: {{ amounts }}")
    assert _rendered(tmp_path, replace(_PAGE, title="B")) == "Another: [1, 2]\n"


def test_what_cannot_be_said_is_rendered_every_time(tmp_path: Path) -> None:
    """A view of a mapping has no bytes of its own."""
    _templates(tmp_path)
    amounts = {1: 2}
    page = replace(_PAGE, context={"amounts": MappingProxyType(amounts)})
    assert _rendered(tmp_path, page).startswith("A: ")
    assert not (tmp_path / "rendered").exists()
