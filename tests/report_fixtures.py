"""Fixtures with the project of `report_project` for tests of analysis and report, read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.report.pages.page import Report
from report_project import inputs_of, write_project


@pytest.fixture(scope="session", name="project")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder that no test changes."""
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session", name="inputs")
def inputs_fixture(project: Path) -> Inputs:
    """The inputs of the project's site."""
    return inputs_of(project)


@pytest.fixture(scope="session", name="report")
def report_fixture(inputs: Inputs) -> Report:
    """The project's report."""
    return Report(inputs)
