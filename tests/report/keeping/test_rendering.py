"""A page's Markdown is taken as it is kept only where its template is given the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from epochcost.report.graph_facts import GraphFacts
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


def test_records_are_said_alike_in_every_process(tmp_path: Path) -> None:
    """The names of the fields that were given are a set, whose order each process has anew."""
    _templates(tmp_path, "{{ graph.opset }}")
    names = ["file", "sha256", "opset", "parameter_count"]
    heads = []
    for given, opset in ((names, 18), (names[::-1], 18), (names, 19)):
        graph = GraphFacts(file="a", sha256="b", opset=opset, parameter_count=1)
        object.__setattr__(graph, "__pydantic_fields_set__", given)
        assert _rendered(tmp_path, replace(_PAGE, context={"graph": graph})) == f"{opset}\n"
        (kept,) = (tmp_path / "rendered").iterdir()
        heads.append(kept.read_text(encoding="utf-8").split()[0])
    assert heads[0] == heads[1] != heads[2]


def test_what_cannot_be_said_is_rendered_every_time(tmp_path: Path) -> None:
    """A view of a mapping has no bytes of its own."""
    _templates(tmp_path)
    amounts = {1: 2}
    page = replace(_PAGE, context={"amounts": MappingProxyType(amounts)})
    assert _rendered(tmp_path, page).startswith("A: ")
    assert not (tmp_path / "rendered").exists()
