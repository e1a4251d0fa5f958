"""Fixtures: the project of `report_project`, read once for all tests."""

from __future__ import annotations

import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.report.site import Site, build
from report_fixtures import inputs_fixture, project_fixture, report_fixture
from report_project import REPOSITORY

__all__ = ["inputs_fixture", "project_fixture", "report_fixture"]


@pytest.fixture(scope="session", name="site")
def site_fixture(inputs: Inputs) -> Site:
    """The project's site."""
    return build(inputs, REPOSITORY / "site_templates")
