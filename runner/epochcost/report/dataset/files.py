"""The files of all figures: CSV, JSON, Parquet, and a Data Package that describes them.

https://datapackage.org/standard/data-package/ (version 2) is what `data/datapackage.json` follows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from epochcost.report.dataset.columns import ENTRIES, Type
from epochcost.report.dataset.lines import Line, dataset
from epochcost.report.dataset.parquet import as_parquet
from epochcost.report.tables import as_csv, as_json

_FOLDER = "data"
_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_FIELD_TYPES: Mapping[Type, str] = {
    "text": "string",
    "integer": "integer",
    "number": "number",
    "date": "date",
}


def data_files(lines: Iterable[Line]) -> Iterator[tuple[str, str | bytes]]:
    """Every file by its address."""
    table = dataset(lines)
    comma_separated, columnar = as_csv(table), as_parquet(table)
    package = _package(comma_separated.encode(), columnar)
    yield f"{_FOLDER}/figures.csv", comma_separated
    yield f"{_FOLDER}/figures.json", as_json(table)
    yield f"{_FOLDER}/figures.parquet", columnar
    yield f"{_FOLDER}/datapackage.json", json.dumps(package, indent=1, ensure_ascii=False) + "\n"


def _package(comma_separated: bytes, columnar: bytes) -> dict[str, Any]:
    return {
        "$schema": _PROFILE,
        "name": "epochcost-figures",
        "title": "Measured, published and estimated costs of training and inference",
        "resources": [
            {
                **_resource("figures", "csv", "text/csv", comma_separated),
                "encoding": "utf-8",
                "schema": _schema(),
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


def _schema() -> dict[str, Any]:
    """Our columns as a Table Schema; ``unit`` and ``empty`` are additions of ours."""
    fields = [
        {
            "name": entry.name,
            "type": _FIELD_TYPES[entry.type],
            "description": entry.meaning,
            "empty": entry.empty,
            **({"unit": entry.unit} if entry.unit else {}),
        }
        for entry in ENTRIES
    ]
    return {"fields": fields, "missingValues": [""]}
