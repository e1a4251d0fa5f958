"""Fixtures: the project of `report_project` and this repository, each read once for all tests."""

from __future__ import annotations

import pytest

from epochcost.analysis.inputs import Inputs, read_inputs
from epochcost.execute.folders import optional_cache_folder
from epochcost.specs.loader import load_catalogue
from report_fixtures import inputs_fixture, project_fixture, report_fixture
from report_project import REPOSITORY

__all__ = ["inputs_fixture", "project_fixture", "report_fixture"]


@pytest.fixture(scope="session")
def own_inputs() -> Inputs:
    """The catalogue and the results of this repository, with the cache that commands use."""
    docs, cache = REPOSITORY / "docs", optional_cache_folder("answers")
    return read_inputs(load_catalogue(REPOSITORY), [docs / "data/results"], docs, cache)
