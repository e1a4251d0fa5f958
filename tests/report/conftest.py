"""Fixtures: the project of `report_project`, read once for all tests."""

from __future__ import annotations

from report_fixtures import inputs_fixture, project_fixture, report_fixture

__all__ = ["inputs_fixture", "project_fixture", "report_fixture"]
