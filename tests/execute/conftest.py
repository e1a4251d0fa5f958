"""Projects that a test declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from declared_model import Declare, declared


@pytest.fixture(name="declare")
def declare_fixture(tmp_path: Path) -> Declare:
    """Write a project with a graph and a part of a spec; see ``declared``."""
    return lambda graph, spec: declared(tmp_path / "project", graph, spec)
