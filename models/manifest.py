# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2"]
# ///
"""The list of the files in this folder: what each is, what wrote it, and with which tools.

The exporters beside this module import it by path.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

import onnx
import weightless

MANIFEST = "manifest.toml"


def as_json(listed: Mapping[str, object]) -> str:
    """Without spaces, as in the files' metadata."""
    return json.dumps(listed, separators=(",", ":"))


def record(path: Path, model: onnx.ModelProto, exporter: str, tools: Iterable[str]) -> None:
    """Replace the file's table in the manifest beside it, the tables in order of name.

    ``tools`` are the packages that the exporter's header pins.
    """
    manifest = path.with_name(MANIFEST)
    tables = tomllib.loads(manifest.read_text("utf-8")) if manifest.exists() else {}
    tables[path.stem] = {
        "file": path.name,
        "exporter": exporter,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "opset": model.opset_import[0].version,
        "ir_version": model.ir_version,
        "parameter_count": weightless.parameter_count(model),
        **{tool: version(tool).partition("+")[0] for tool in tools},
    }
    manifest.write_text(
        "# Written by the exporters in this folder; a test holds it to the files.\n"
        + "".join(_table(name, tables[name]) for name in sorted(tables)),
        "utf-8",
    )


def _table(name: str, entries: dict[str, str | int]) -> str:
    lines = (
        f"{key} = {value}" if isinstance(value, int) else f'{key} = "{value}"'
        for key, value in entries.items()
    )
    return f"\n[{name}]\n" + "\n".join(lines) + "\n"
