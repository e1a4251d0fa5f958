"""Filters and macros of templates, in cases that the pages of other tests lack."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pytest

from epochcost.report.templates import environment, price_date
from price_plans import owned, rented
from report_project import REPOSITORY


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
    """The age of a rent is shown from 61 days on, counted to the build's date.

    A purchase has no age.
    """
    built = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(built.timestamp())))
    read, bought = (
        price.model_copy(update={"as_of": dt.date.fromisoformat(day)})
        for price in (rented(), owned())
    )
    assert price_date(read).endswith(age)
    assert price_date(bought).endswith(f"{day}</span>")


def rendered(text: str, **values: object) -> str:
    """A template's text in which ``m`` holds the pieces of pages."""
    imported = '{% import "partials/macros.md.jinja" as m with context %}'
    template = environment(REPOSITORY / "site_templates").from_string(imported + text)
    return template.render(page=None, root="", **values)


@pytest.mark.parametrize(
    ("confirmed", "above", "sentences"),
    [
        ("", "", ["doubt"]),
        ("", "date", ["doubt"]),
        ("a box", "", ["doubt", "a box"]),
        ("a box", "date", ["a box"]),
        ("a box", "billing", ["doubt", "a box"]),
    ],
)
def test_a_doubted_price_is_explained(confirmed: str, above: str, sentences: list[str]) -> None:
    """A doubt is explained once on a page, with a confirmed price if there is one."""
    price = SimpleNamespace(unconfirmed_text="date", as_of=dt.date(2026, 11, 1))
    text = rendered(
        "{{ m.unconfirmed(price, confirmed, above) }}",
        price=price,
        confirmed=confirmed,
        above=above,
    )
    phrases = {"doubt": "does not confirm its date", "a box": "at a confirmed price: a box."}
    assert [name for name, phrase in phrases.items() if phrase in text] == sentences


@pytest.mark.parametrize(("rows", "is_filtered"), [(10, False), (11, True)])
def test_a_long_table_keeps_room_for_its_filter(rows: int, is_filtered: bool) -> None:
    """From the first row on: a browser may show that row before it has the others."""
    call = "{% call m.sortable('') %}{{ '<tr></tr>' | safe * rows }}{% endcall %}"
    assert ("ec-filtered" in rendered(call, rows=rows)) is is_filtered
