"""The one table as Parquet, for DuckDB, pandas and everything else that reads columns.

DuckDB writes it.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

from epochcost.report.dataset.columns import ENTRIES, Entry, Type
from epochcost.report.escape import one_line
from epochcost.report.tables import Table, Value
from epochcost.units import plain

# Decimals become binary floats, with which whoever reads Parquet computes; CSV keeps all digits.
_SQL_TYPES: Mapping[Type, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
}
_COPY = """
COPY (SELECT * FROM read_csv({source}, auto_detect = false, header = true, delim = ',',
      quote = '"', escape = '"', nullstr = '', columns = {{{columns}}}))
TO {target} (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{epochcost_columns: {dictionary}}})
"""


def as_parquet(table: Table) -> bytes:
    """The table of `dataset` as a file whose metadata hold the dictionary of columns as JSON."""
    lines = [[_cell(value) for value in row] for row in table.rows]
    with tempfile.TemporaryDirectory() as folder:
        return _write(lines, Path(folder) / "figures.parquet").read_bytes()


def dictionary(entries: Sequence[Entry] = ENTRIES) -> str:
    """The columns as JSON: name, meaning, unit, type and when they are empty."""
    return json.dumps([asdict(entry) for entry in entries], ensure_ascii=False)


def _write(lines: Sequence[Sequence[str]], target: Path) -> Path:
    """Let DuckDB read the lines as CSV and write them."""
    import duckdb  # noqa: PLC0415  no command but a build needs it

    source = target.with_suffix(".csv")
    with source.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([[entry.name for entry in ENTRIES], *lines])
    columns = ", ".join(f"{entry.name}: '{_SQL_TYPES[entry.type]}'" for entry in ENTRIES)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            _COPY.format(
                source=_quoted(str(source)),
                target=_quoted(str(target)),
                columns=columns,
                dictionary=_quoted(dictionary()),
            )
        )
    return target


def _cell(value: Value) -> str:
    """What DuckDB reads back; text in one line, unknown as nothing."""
    if value is None:
        return ""
    return plain(value) if isinstance(value, Decimal) else one_line(str(value))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
