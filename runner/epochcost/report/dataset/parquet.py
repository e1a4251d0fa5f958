"""The one table as Parquet, for DuckDB, pandas and everything else that reads columns.

DuckDB writes it, and is loaded only where the table has changed since it was last written.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from functools import partial
from importlib.metadata import version
from pathlib import Path

from epochcost.report.dataset.columns import ENTRIES, Entry, Type
from epochcost.report.escape import one_line
from epochcost.report.keeping.processes import begun_beside
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


def as_parquet(table: Table, cache: Path | None = None) -> bytes:
    """The table of `dataset` as a file whose metadata hold the dictionary of its columns as JSON.

    ``cache`` is a folder where the file is kept by its content; None keeps nothing.
    """
    lines = [[_cell(value) for value in row] for row in table.rows]
    if cache is not None:
        kept = cache / f"figures-{_key(lines)}.parquet"
        if not kept.is_file():
            # What DuckDB holds would stay with the build until its end.
            begun_beside(partial(_write, lines), [kept], 1).wait()
        if not kept.is_file():
            _write(lines, kept)
        return kept.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        return _write(lines, Path(folder) / "figures.parquet").read_bytes()


def dictionary(entries: Sequence[Entry] = ENTRIES) -> str:
    """The columns as JSON: name, meaning, unit, type and when they are empty."""
    return json.dumps([asdict(entry) for entry in entries], ensure_ascii=False)


def _write(lines: Sequence[Sequence[str]], target: Path) -> Path:
    """Let DuckDB read the lines as CSV and write them; the target is whole at once.

    DuckDB opens only paths in UTF-8, as that of temporary files is; the target's may be another.
    """
    import duckdb  # noqa: PLC0415  a kept file needs no DuckDB

    columns = ", ".join(f"{entry.name}: '{_SQL_TYPES[entry.type]}'" for entry in ENTRIES)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "figures.csv", Path(folder) / "figures.parquet"
        with source.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([[entry.name for entry in ENTRIES], *lines])
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute(
                _COPY.format(
                    source=_quoted(str(source)),
                    target=_quoted(str(made)),
                    columns=columns,
                    dictionary=_quoted(dictionary()),
                )
            )
        part = shutil.copyfile(made, target.with_suffix(".part"))
    return part.replace(target)


def _cell(value: Value) -> str:
    """What DuckDB reads back; text in one line, unknown as nothing."""
    if value is None:
        return ""
    return plain(value) if isinstance(value, Decimal) else one_line(str(value))


def _key(lines: Sequence[Sequence[str]]) -> str:
    shape = f"{version('duckdb')} {_COPY} {dictionary()}"
    return hashlib.sha256(f"{shape}\n{json.dumps(lines)}".encode()).hexdigest()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
