"""JSON Schemas of the spec files, for editors: draft 7, from the models that also judge.

What holds between keys ("either amount or components") and between files is not in them: for that
there is `epochcost check`. Without references, for editors show the words of the nearest table.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from epochcost.specs.kinds import KINDS

DIALECT = "http://json-schema.org/draft-07/schema#"
# What one file of a folder holds; schemas are named by it.
SINGULAR: Mapping[str, str] = MappingProxyType(
    {
        "hardware": "hardware",
        "prices": "price",
        "currencies": "currency",
        "grids": "grid",
        "datasets": "dataset",
        "models": "model",
        "studies": "study",
        "published": "published",
    }
)
Schema = Mapping[str, Any]
# pydantic's names of bounds that it cannot express, and JSON Schema's.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
# What only other programs read, or TOML cannot hold.
_DROPPED = ("title", "discriminator", "$defs")


def schema_of(kind: str) -> Schema:
    """The JSON Schema of the files of a kind, which is named by its folder."""
    made = KINDS[kind].model_json_schema(schema_generator=_OfToml)
    tidied = _tidied(made, made.get("$defs", {}))
    assert isinstance(tidied, dict), "a model is a table"
    return {"$schema": DIALECT, "title": f"epochcost {SINGULAR[kind]}", **tidied}


def schema_files() -> dict[str, str]:
    """The text of every schema by the name of its file, such as ``price.json``."""
    return {
        f"{name}.json": json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"
        for kind, name in SINGULAR.items()
    }


class _OfToml(GenerateJsonSchema):
    """TOML's values: numbers are exact and bare, and there is no null."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        found: JsonSchemaValue = {"type": "number"}
        for key in _BOUNDS:
            bound = schema.get(key)
            if isinstance(bound, int | Decimal):
                found[key] = _number(bound)
        return found

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, BaseModel):
            return None
        return _number(dft) if isinstance(dft, Decimal) else super().encode_default(dft)


def _number(value: int | Decimal) -> int | float:
    return int(value) if value == int(value) else float(value)


def _tidied(value: Any, definitions: Schema) -> Any:
    if isinstance(value, list):
        return [_tidied(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        target = definitions[value["$ref"].rpartition("/")[2]]
        value = {**target, **{key: item for key, item in value.items() if key != "$ref"}}
    tidied = {
        key: {name: _tidied(item, definitions) for name, item in inner.items()}
        if key == "properties"
        else _tidied(inner, definitions)
        for key, inner in value.items()
        if key not in _DROPPED
    }
    return _worded(_bounded(tidied))


def _bounded(schema: dict[str, Any]) -> dict[str, Any]:
    """With JSON Schema's names of bounds, and of two lower ones the exclusive."""
    renamed = {_BOUNDS.get(key, key): value for key, value in schema.items()}
    if renamed.get("exclusiveMinimum") == renamed.get("minimum"):
        renamed.pop("minimum", None)
    if "exclusiveMaximum" in renamed:
        renamed.pop("maximum", None)
    return renamed


def _worded(schema: dict[str, Any]) -> dict[str, Any]:
    """With one way to say a choice, no empty defaults, and words in Markdown."""
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
        del schema["const"]
    if schema.get("default", ...) in (None, [], {}):
        del schema["default"]
    if isinstance(schema.get("description"), str):
        words = inspect.cleandoc(schema["description"]).replace("``", "`")
        schema = {**schema, "description": words}
    return schema
