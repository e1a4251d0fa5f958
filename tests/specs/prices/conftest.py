"""A project with one rented machine, for tests of imported prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from listed_prices import Project


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a machine of EC2 that has a price of January in us-east-1."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.machine("box.xlarge")
    project.price()
    return project
