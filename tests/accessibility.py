"""Faults of a page by axe-core, without the few faults of the theme itself."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

# Rule → what of Material for MkDocs breaks it, and why it stays.
THEMES = {
    "aria-dialog-name": (".md-search", "the theme's search is a dialog without a name"),
    "scrollable-region-focusable": (
        ".md-typeset__scrollwrap",
        "the theme's program frames wide tables; browsers give frames that scroll the focus",
    ),
}
_RUN = """async rules => {
  const options = { resultTypes: ["violations"], ...(rules.length ? { runOnly: rules } : {}) };
  return (await axe.run(document, options)).violations.map(one => [
    one.id, one.nodes.map(node => [node.target.join(" "), node.html.slice(0, 200),
      [...node.any, ...node.all, ...node.none].map(check => check.message).join("; ")])
  ]);
}"""
# What fades in has another contrast while it does.
_STILL = "*, *::before, *::after { animation: none !important; transition: none !important; }"


def program() -> str:
    """The script of axe-core, which must run in a page before other scripts."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def hold_still(page: Page) -> None:
    """End animations and transitions of a page."""
    page.add_style_tag(content=_STILL)


def violations(page: Page, rules: Sequence[str] = ()) -> list[Any]:
    """The rules that a page breaks, each with elements and reasons. By default all rules count."""
    found = page.evaluate(_RUN, list(rules))
    ours = [(rule, [node for node in nodes if not _themes(rule, node[0])]) for rule, nodes in found]
    return [(rule, nodes) for rule, nodes in ours if nodes]


def _themes(rule: str, element: str) -> bool:
    return rule in THEMES and THEMES[rule][0] in element
