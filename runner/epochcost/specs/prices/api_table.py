"""Read tables of token prices: CSV files in which each row is the price of one API.

The CSV file is in the folder of its spec. Its columns are the keys of ``ApiPrice`` except ``id``,
which is made from the provider and the name. Keys of the table ``long`` are written
``long.input_per_million``. An empty cell means that the key is missing.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from epochcost.errors import Fault, InputError
from epochcost.specs.api import ApiPrice, LongPrompts
from epochcost.specs.findings import validate
from epochcost.specs.prices.tables import csv_rows
from epochcost.specs.wording import describe, join_choices, suggest_or_list

_LONG = "long"
COLUMNS = (
    *(key for key in ApiPrice.model_fields if key not in {"id", _LONG, "unconfirmed"}),
    *(f"{_LONG}.{key}" for key in LongPrompts.model_fields),
)
_NUMBERS = ("per_million", "tokens")
_NOT_IN_ID = re.compile(r"[^a-z0-9._]+")
_LONGEST_ID = 80


class ApiRow(NamedTuple):
    """A valid row: its API's price, and its line in the file."""

    line: int
    price: ApiPrice


def read_api_prices(path: Path, models: Collection[str] | None) -> Iterator[ApiRow | Fault]:
    """Read the prices of a table row by row; yields a fault for each invalid key of a row.

    ``models`` are the ids that a row may name; None if they are unknown.
    """
    try:
        rows = list(csv_rows(path))
    except InputError as error:
        yield Fault(path, 1, 1, str(error))
        return
    header = rows[0][1] if rows else []
    unknown = next((name for name in header if name not in COLUMNS), None)
    if unknown is not None or not header or len(set(header)) < len(header):
        got = "twice one" if unknown is None else describe(unknown)
        yield Fault(path, 1, 1, f"should have columns of {join_choices(COLUMNS)}, got {got}")
        return
    for line, cells in rows[1:]:
        for part in judged_row(header, cells, models):
            yield Fault(path, line, 1, part) if isinstance(part, str) else ApiRow(line, part)


def judged_row(
    header: Sequence[str], cells: Sequence[str], models: Collection[str] | None
) -> Iterator[ApiPrice | str]:
    """Validate a row: yields the price, or a message for each fault."""
    if len(cells) != len(header):
        yield f"should have {len(header)} cells, as the header has, got {len(cells)}"
        return
    table: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        if cell:
            outer, _, inner = name.rpartition(".")
            (table.setdefault(outer, {}) if outer else table)[inner] = _value(inner, cell)
    table["id"] = api_id(str(table.get("provider", "")), str(table.get("name", "")))
    judged = validate(ApiPrice, table)
    if isinstance(judged, tuple):
        yield from map(str, judged)
    elif models is not None and judged.model not in {None, *models}:
        choices = suggest_or_list(str(judged.model), models)
        yield f"model: should be the id of a spec in models/, got {describe(judged.model)}{choices}"
    else:
        yield judged


def api_id(provider: str, name: str) -> str:
    """The id of an API: its provider and the provider's name of the model."""
    return _NOT_IN_ID.sub("-", f"{provider} {name}".lower()).strip("-._")[:_LONGEST_ID]


def _value(key: str, cell: str) -> object:
    """The value of a cell, converted to the type of its key; if that fails, the cell's text."""
    try:
        if key in {"as_of", "valid_until"}:
            return dt.date.fromisoformat(cell)
        if key.endswith(_NUMBERS):
            return int(cell) if cell.isdecimal() else Decimal(cell)
    except (ValueError, ArithmeticError):
        pass
    return cell
