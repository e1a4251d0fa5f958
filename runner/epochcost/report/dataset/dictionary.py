"""`docs/data-dictionary.md`: every column of the published data, as the code lists it."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.dataset.columns import ENTRIES

_INTRODUCTION = """\
# Data dictionary

The columns of `data/figures.csv`, `data/figures.json` and `data/figures.parquet`, which hold every
figure of the site, one line per piece of work and price plan. Written by `make schemas`; how to use
the files is told in [Using the data](using-the-data.md).

A value that is not known or does not apply is empty in CSV and null elsewhere, never zero. Numbers
have all their digits in CSV and, as strings, in JSON; in Parquet they are 64-bit binary floats.
Text that a spreadsheet would run as a formula begins with an apostrophe in CSV only.
"""
_HEAD = "| Column | Type | Unit | Meaning | Empty |\n|---|---|---|---|---|"


def dictionary_page() -> str:
    """The whole page as Markdown."""
    return "\n".join([_INTRODUCTION, _HEAD, *_rows()]) + "\n"


def _rows() -> Iterator[str]:
    for one in ENTRIES:
        yield f"| `{one.name}` | {one.type} | {one.unit} | {one.meaning} | {one.empty} |"
