"""Represent tables as values (columns with units), and write them as CSV, JSON and HTML."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from epochcost.analysis.table.lines import Value
from epochcost.report.escape import one_line
from epochcost.units import money, plain, seconds

Form = Literal["text", "seconds", "money", "number"]
_JSON = json.JSONEncoder(ensure_ascii=False).encode
# A spreadsheet runs text as a formula if its first visible letter is one of these or a wide form.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
_BREAKS = ("\t", "\r", "\n")


@dataclass(frozen=True, slots=True)
class Column:
    """A column; ``name`` is for files and may end with a unit (time_s), ``title`` for readers."""

    name: str
    title: str
    form: Form = "text"
    meaning: str = ""
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class Table:
    """Values by row and column; None stands for a value that is unknown or does not apply."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]


def _text(column: Column, value: Value) -> str:
    if value is None:
        return "—"
    text = str(value)
    match column.form:
        case "seconds":
            text = seconds(float(value))
        case "money" if isinstance(value, Decimal):
            text = money(value, column.currency)
        case "number":
            text = f"{value:,f}" if isinstance(value, Decimal) else f"{value:,}"
    return text


def as_html(table: Table) -> str:
    """Render the table as HTML, with all columns except texts aligned to the right."""
    aligned = [
        "" if column.form == "text" else ' style="text-align: right;"' for column in table.columns
    ]
    head = _line("th", aligned, (column.title for column in table.columns))
    body = "\n".join(_line("td", aligned, map(_text, table.columns, row)) for row in table.rows)
    return f"<table><thead>{head}</thead> <tbody>{body}</tbody></table>"


def _line(tag: str, aligned: Iterable[str], cells: Iterable[str]) -> str:
    parts = zip(aligned, cells, strict=True)
    inside = (f"<{tag}{style}>{html.escape(one_line(cell))}</{tag}>" for style, cell in parts)
    return f"<tr>{' '.join(inside)}</tr>"


def as_csv(table: Table, *, guarded: bool = True) -> str:
    """Render the table as CSV with a header line; unknown values are empty.

    ``guarded`` changes texts that a spreadsheet would run as formulas.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.name for column in table.columns)
    writer.writerows([_cell(value, guarded) for value in row] for row in table.rows)
    return text.getvalue()


def as_json(table: Table) -> str:
    """Render as JSON: meanings of columns, then rows; numbers are rounded to 64-bit floats."""
    columns = {column.name: column.meaning or column.title for column in table.columns}
    names = list(columns)
    rows = (dict(zip(names, map(_json_value, row), strict=True)) for row in table.rows)
    listed = ",\n".join(map(_JSON, rows))
    return f'{{"columns": {_JSON(columns)},\n"rows": [\n{listed}\n]}}\n'


def as_script(name: str, value: Any) -> str:
    """Render ``value`` as a script that sets a variable, since a page on disk cannot fetch JSON."""
    data = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return f'window["{name}"]={data};\n'


def _cell(value: Value, guarded: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return plain(value)
    return f"'{value}" if guarded and isinstance(value, str) and _is_formula(value) else str(value)


def _is_formula(text: str) -> bool:
    if text[:1].isalnum():
        return False
    visible = (letter for letter in text if letter.isprintable() and not letter.isspace())
    return text.startswith(_BREAKS) or next(visible, "") in _FORMULA


def _json_value(value: Value) -> str | float | None:
    return float(value) if isinstance(value, Decimal) else value
