"""Scripts outside the packages still find the names that they import from them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("benchmarks", "examples", "models", ".github/scripts")
    for path in (ROOT / folder).rglob("*.py")
)


def imported(script: Path) -> Iterator[tuple[str, str]]:
    """Each module of our packages that a script imports from, with the imported name."""
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        module = (isinstance(node, ast.ImportFrom) and node.module) or ""
        if isinstance(node, ast.ImportFrom) and module.startswith(("epochcost.", "onnxstep")):
            yield from ((module, alias.name) for alias in node.names)


@pytest.mark.parametrize("script", SCRIPTS)
def test_imported_names_exist(script: str) -> None:
    """A renamed function or module is also renamed where a benchmark uses it."""
    for module, name in imported(ROOT / script):
        source = importlib.import_module(module)
        if not hasattr(source, name):
            importlib.import_module(f"{module}.{name}")
