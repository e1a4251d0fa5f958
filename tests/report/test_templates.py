"""Filters of templates in forms that no page shows."""

from __future__ import annotations

import datetime as dt

import pytest

from epochcost.report.templates import price_date


@pytest.mark.parametrize(
    ("day", "age"),
    [
        ("2026-11-23", "2026-11-23</span>"),
        ("2026-09-24", "2026-09-24</span>"),
        ("2026-09-23", "2026-09-23</span>, 61 days old"),
        ("2024-11-24", "2024-11-24</span>, 729 days old"),
        ("2016-11-23", "2016-11-23</span>, 10 years old"),
    ],
)
def test_an_old_price_says_its_age(day: str, age: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 61 days before the build on; the environment may set the build's date."""
    built = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(built.timestamp())))
    assert price_date(dt.date.fromisoformat(day)).endswith(age)
