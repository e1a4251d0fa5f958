"""Fixtures: a repository with one commit, and its comparison with the working tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from revisions import Compare, compared, write_repository


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit."""
    return write_repository(tmp_path / "project")


@pytest.fixture
def compare(project: Path) -> Compare:
    """Compare the last commit with the working tree."""
    return lambda: compared(project)
