"""What the manifest of the models' folder says about an ONNX file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tomli
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from epochcost.errors import InputError

MANIFEST = "manifest.toml"


class GraphFacts(BaseModel):
    """One entry; versions of exporters beside these are kept in the file only."""

    model_config = ConfigDict(frozen=True)

    file: str
    sha256: str
    opset: int
    parameter_count: int


_ENTRIES = TypeAdapter(dict[str, GraphFacts])


def read_graph_facts(folder: Path) -> Mapping[str, GraphFacts]:
    """The facts by file name; empty where there is no manifest.

    Raises InputError on a manifest of another form.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        entries = _ENTRIES.validate_python(tomli.loads(path.read_text(encoding="utf-8")))
    except (tomli.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
        raise InputError(
            f"{path}: demanded a manifest as the exporters write it; got {error}"
        ) from None
    return {entry.file: entry for entry in entries.values()}
