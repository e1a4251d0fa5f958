"""Write all results of the site as CSV, JSON and Parquet, described by a Data Package.

The package follows version 2 of https://datapackage.org/standard/data-package/.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from epochcost.analysis.table.columns import ENTRIES, ColumnType
from epochcost.analysis.table.lines import Line, values_of
from epochcost.report.tables import Column, Table, as_csv, as_json

_FOLDER = "data"
_NAMES = tuple(entry.name for entry in ENTRIES)
_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
# Types in the Data Package, and in Parquet. Decimals become binary floats there, which readers of
# Parquet compute with; CSV has all digits.
_TYPES: Mapping[ColumnType, tuple[str, str]] = {
    "text": ("string", "VARCHAR"),
    "integer": ("integer", "BIGINT"),
    "number": ("number", "DOUBLE"),
    "date": ("date", "DATE"),
}


def data_files(lines: Iterable[Line]) -> Iterator[tuple[str, str | bytes]]:
    """Yield address and content of the table in CSV, JSON and Parquet, and of its Data Package."""
    table = dataset_table(lines)
    comma_separated, columnar = as_csv(table), as_parquet(table)
    package = _package(comma_separated.encode(), columnar)
    yield f"{_FOLDER}/figures.csv", comma_separated
    yield f"{_FOLDER}/figures.json", as_json(table)
    yield f"{_FOLDER}/figures.parquet", columnar
    yield f"{_FOLDER}/datapackage.json", json.dumps(package, indent=1, ensure_ascii=False) + "\n"


def dataset_table(lines: Iterable[Line]) -> Table:
    """The table of all results, with a row for each of ``lines``."""
    columns = tuple(Column(entry.name, entry.name, meaning=entry.meaning) for entry in ENTRIES)
    values = map(values_of, lines)
    return Table(columns, tuple(tuple(map(line.get, _NAMES)) for line in values))


def _package(comma_separated: bytes, columnar: bytes) -> dict[str, Any]:
    return {
        "$schema": _PROFILE,
        "name": "epochcost-figures",
        "title": "Measured, published, predicted and estimated costs of training and inference",
        "licenses": [{"name": "Apache-2.0", "path": "https://www.apache.org/licenses/LICENSE-2.0"}],
        "resources": [
            {
                **_resource("figures", "csv", "text/csv", comma_separated),
                "encoding": "utf-8",
                "schema": _table_schema(),
            },
            _resource("figures-parquet", "parquet", "application/vnd.apache.parquet", columnar),
        ],
    }


def _resource(name: str, form: str, media_type: str, content: bytes) -> dict[str, Any]:
    return {
        "name": name,
        "path": f"figures.{form}",
        "format": form,
        "mediatype": media_type,
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
    }


def _table_schema() -> dict[str, Any]:
    # ``empty`` and ``unit`` are additions to Table Schema.
    fields = [
        {
            "name": entry.name,
            "type": _TYPES[entry.type][0],
            "description": entry.meaning,
            "empty": entry.empty,
            **({"unit": entry.unit} if entry.unit else {}),
        }
        for entry in ENTRIES
    ]
    return {"fields": fields, "missingValues": [""]}


def as_parquet(table: Table) -> bytes:
    """Make a Parquet file of the table."""
    import duckdb  # noqa: PLC0415  only a build needs it

    types = {entry.name: _TYPES[entry.type][1] for entry in ENTRIES}
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as database:
        source, target = (Path(folder) / f"figures.{form}" for form in ("csv", "parquet"))
        source.write_text(as_csv(table, guarded=False), encoding="utf-8", newline="")
        relation = database.read_csv(str(source), auto_detect=False, header=True, columns=types)
        relation.write_parquet(str(target), compression="zstd")
        return target.read_bytes()
