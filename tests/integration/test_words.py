"""Phrases that people found odd, and that no page, help text or message uses any more."""

from __future__ import annotations

import ast
import html
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import epochcost
from epochcost.cli.app import COMMANDS, load_command

ROOT = Path(__file__).parents[2]
_LIST = tomllib.loads(Path(__file__).with_name("retired_phrases.toml").read_text("utf-8"))
RETIRED = [re.compile(one, re.IGNORECASE) for one in (_LIST["phrases"] | _LIST["also"]).values()]
# In a help text a number or a result is meant; elsewhere also the name of a file or a column.
FIGURE = re.compile(r"\bfigures?\b", re.IGNORECASE)
_UNREAD = re.compile(r"(?s)<(script|style|template|svg|code|pre)\b.*?</\1>|<[^>]*>")


def test_each_phrase_is_gone_or_has_its_reason() -> None:
    """The list that they are from has 75."""
    assert sorted(map(int, [*_LIST["phrases"], *_LIST["kept"]])) == [*range(1, 76)]


def test_no_page_has_a_retired_phrase(folder: Path) -> None:
    """Neither prose, tables and charts' titles nor what a picture says in words."""
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        written = page.read_text(encoding="utf-8")
        spoken = " ".join(re.findall(r'(?:alt|aria-label|title)="([^"]*)"', written))
        words = html.unescape(f"{_UNREAD.sub(' ', written)} {spoken}")
        assert list(_found(words)) == [], page.name


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda one: one.name,
)
def test_no_hand_written_page_has_one(path: Path) -> None:
    """Outside code."""
    prose = re.sub(r"(?s)```.*?```|`[^`]*`", " ", path.read_text(encoding="utf-8"))
    assert list(_found(prose)) == []


def test_no_help_has_one() -> None:
    """Of any command and of any of its options."""
    helps = [text for name in COMMANDS for text in (COMMANDS[name], *_helps(load_command(name)))]
    assert len(helps) > 100
    assert [one for text in helps for one in _found(text, FIGURE)] == []


def test_no_message_has_one() -> None:
    """No text in the code but documentation: errors, tables, charts, descriptions of columns."""
    texts = [
        (path.name, text)
        for path in sorted(Path(epochcost.__file__).parent.rglob("*.py"))
        for text in _texts(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert len(texts) > 5000
    assert [(name, one) for name, text in texts for one in _found(text)] == []


def _found(text: str, *more: re.Pattern[str]) -> Iterator[str]:
    for pattern in (*RETIRED, *more):
        for match in pattern.finditer(" ".join(text.split())):
            yield match.string[max(0, match.start() - 30) : match.end() + 30]


def _helps(command: object) -> Iterator[str]:
    yield getattr(command, "help", None) or ""
    for parameter in getattr(command, "params", ()):
        yield getattr(parameter, "help", None) or ""
    for one in getattr(command, "commands", {}).values():
        yield from _helps(one)


def _texts(tree: ast.AST) -> Iterator[str]:
    """Literals, what a formatted one says between its values as one; no docstrings."""
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant):
        return
    if isinstance(tree, ast.JoinedStr):
        yield "".join(
            str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else "…"
            for part in tree.values
        )
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    for child in ast.iter_child_nodes(tree):
        yield from _texts(child)
