"""What the table of all figures is, for search engines and for machine learning's own loaders.

JSON-LD of schema.org stands on the page Data, Croissant 1.1 (https://docs.mlcommons.org/croissant/)
in `data/croissant.json`. Addresses are relative: a checkout does not know where it is published.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from epochcost import __version__
from epochcost.report.dataset.columns import ENTRIES, ColumnType
from epochcost.report.pages.page import Report

URI = "data/croissant.json"
_NAME = "epochcost-figures"
_TEXT = (
    "Times and costs of training and inference of neural networks by machine and price plan: "
    "measured, published, predicted or estimated, each marked so, with intervals, dates and "
    "evidence."
)
_KEYWORDS = ["machine learning", "training cost", "inference cost", "ONNX", "cloud prices"]
_FORMS = {"csv": "text/csv", "parquet": "application/x-parquet"}
_TYPES: Mapping[ColumnType, str] = {
    "text": "sc:Text",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "date": "sc:Date",
}
_LICENCE = re.compile(r"^license: *\"?([\w.+-]+)", re.MULTILINE)
# Terms of Croissant that its context maps to themselves under its prefix.
_TERMS = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field"),
    *("fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset"),
    *("jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
    *("repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}


def json_ld(report: Report) -> dict[str, Any]:
    """The table as schema.org's Dataset, with addresses from the page Data."""
    files = [
        {"@type": "DataDownload", "encodingFormat": form, "contentUrl": f"data/figures.{name}"}
        for name, form in {**_FORMS, "json": "application/json"}.items()
    ]
    described = {"@context": "https://schema.org/", "@type": "Dataset", "name": _NAME}
    return described | _about(report) | {"distribution": files}


def croissant(report: Report, files: Mapping[str, str | bytes]) -> str:
    """The table and its columns as Croissant; ``files`` are those of the table, by address."""
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": _NAME,
        "url": "../data.html",
        "isLiveDataset": True,
        **_about(report),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": f"figures.{name}",
                "name": f"figures.{name}",
                "contentUrl": f"figures.{name}",
                "encodingFormat": form,
                "sha256": _sha256(files[f"data/figures.{name}"]),
            }
            for name, form in _FORMS.items()
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "figures",
                "name": "figures",
                "description": "One row per model, machine and price.",
                "field": list(_fields()),
            }
        ],
    }
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def _about(report: Report) -> dict[str, Any]:
    days = [one.date for one in report.observations]
    day = max(days, default=dt.date.min).isoformat()
    licence = _licence(report)
    return {
        "description": _TEXT,
        "keywords": _KEYWORDS,
        "creator": {"@type": "Organization", "name": "epochcost contributors"},
        "datePublished": day,
        "dateModified": day,
        "version": __version__,
        **({"license": licence} if licence else {}),
    }


def _licence(report: Report) -> str:
    """The address of the licence that the project's CITATION.cff names; empty without one."""
    path = report.catalogue.root / "CITATION.cff"
    found = _LICENCE.search(path.read_text("utf-8", "replace")) if path.is_file() else None
    return f"https://spdx.org/licenses/{found[1]}.html" if found else ""


def _sha256(content: str | bytes) -> str:
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def _fields() -> Iterator[dict[str, Any]]:
    """Every column as Parquet has it, where what is unknown is null."""
    for entry in ENTRIES:
        yield {
            "@type": "cr:Field",
            "@id": f"figures/{entry.name}",
            "name": entry.name,
            "description": entry.meaning + (f", in {entry.unit}" if entry.unit else ""),
            "dataType": _TYPES[entry.type],
            "source": {
                "fileObject": {"@id": "figures.parquet"},
                "extract": {"column": entry.name},
            },
        }
