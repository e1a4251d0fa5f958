"""Fixtures of the project of `report_project`, read once, for tests of analysis and of report."""

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
    """What the project's site is made of."""
    return inputs_of(project)


@pytest.fixture(scope="session", name="report")
def report_fixture(inputs: Inputs) -> Report:
    """The project's report."""
    return Report(inputs)
