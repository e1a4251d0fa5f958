"""A fixture for tests that declare their own project."""

from __future__ import annotations

from pathlib import Path

import pytest

from declared_model import Declare, declared


@pytest.fixture(name="declare")
def declare_fixture(tmp_path: Path) -> Declare:
    """Write a project with a graph and model settings; see ``declared``."""
    return lambda graph, spec: declared(tmp_path / "project", graph, spec)
