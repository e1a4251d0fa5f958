"""What a shell completes behind options that name a spec: the ids of the folder's specs.

An id is the name of its file, so nothing is read. Typer writes the shells' own scripts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from epochcost.specs.tree import FOLDER


def ids(kind: str) -> Callable[[str], list[str]]:
    """The ids of a kind of spec, which is named by its folder, that begin as a person has typed."""

    def known(incomplete: str) -> list[str]:
        stems = (path.stem for path in Path(FOLDER, kind).rglob("*.toml"))
        return sorted(stem for stem in stems if stem.startswith(incomplete))

    return known
