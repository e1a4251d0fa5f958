"""Describe the columns of the table of figures: meaning, unit, type, and when a cell is empty.

`columns.csv` lists them, and `lines` computes the values. `docs/reference/data-dictionary.md` is
generated from the list.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

ColumnType = Literal["text", "integer", "number", "date"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A column of the table; ``unit`` is empty for texts, ``empty`` says when a cell is empty."""

    name: str
    meaning: str
    empty: str
    type: ColumnType
    unit: str


def _entries() -> Iterator[Entry]:
    """Yield the columns; after a value with an interval, the ends of the interval follow."""
    form = TypeAdapter(Entry)
    listed = Path(__file__).with_name("columns.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(listed.splitlines()):
        entry = form.validate_python(row)
        yield entry
        if row["interval"]:
            stem, suffix = entry.name.removesuffix("_s"), "_s" * entry.name.endswith("_s")
            nothing = f"{entry.empty}; also if no interval is known"
            few = f"{nothing}, or its samples are too few for a lower end"
            for name, end, empty in (("low", "lower", few), ("high", "upper", nothing)):
                meaning = f"{entry.meaning}: {end} end of its interval"
                yield replace(entry, name=f"{stem}_{name}{suffix}", meaning=meaning, empty=empty)


ENTRIES = tuple(_entries())
_INTRODUCTION = """\
# Data dictionary

This page lists the columns of `data/figures.csv`, `data/figures.json` and `data/figures.parquet`.
The files contain every result of the site, in one row per model, machine and price. `make schemas`
writes this page. See also: [use the data](../how-to/use-the-data.md).

A value that is unknown or does not apply is empty in CSV and null in the other files, never zero.
Numbers have all their digits in CSV; in JSON and Parquet they are 64-bit binary floats. In CSV,
text that a spreadsheet would run as a formula begins with an apostrophe.

Many times and costs have an interval. For a measured mean it is the 95 % confidence interval, for a
prediction the 90 % interval. For an estimate, the interval comes from the lowest and the highest
assumed utilisation.
"""
_HEAD = "| Column | Type | Unit | Meaning | Empty |\n|---|---|---|---|---|"


def dictionary_page() -> str:
    """The data dictionary as a Markdown page."""
    rows = (
        f"| `{entry.name}` | {entry.type} | {entry.unit} | {entry.meaning} | {entry.empty} |"
        for entry in ENTRIES
    )
    return "\n".join([_INTRODUCTION, _HEAD, *rows]) + "\n"
