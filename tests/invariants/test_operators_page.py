"""The site's page of operators is the library's."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_operators_is_that_of_the_library() -> None:
    """Only its link to the how-to page differs."""
    library = (ROOT / "runner/onnxstep/docs/operators.md").read_text("utf-8")
    site = (ROOT / "docs/reference/operators.md").read_text("utf-8")
    links = ("(adding-an-operator.md)", "(../how-to/add-an-operator.md)")
    assert site == library.replace(*links), "run: make operators"
