"""JSON Schemas (draft 7) of spec files for editors, and the page docs/reference/specs.md.

The schemas lack the rules between keys and between files. They repeat equal tables, because a
reference (``$ref``) would hide the description of the key.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from epochcost.specs.base import LARGEST
from epochcost.specs.catalogue import KINDS, SINGULAR
from epochcost.units import either

DIALECT = "http://json-schema.org/draft-07/schema#"
Schema = Mapping[str, Any]
# Names of bounds in pydantic, with their names in JSON Schema.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
# Keys that most kinds of spec have, below their own keys.
_LAST = ("source", "notes", "unconfirmed")
# Keys of a schema that editors do not need.
_DROPPED = ("title", "discriminator", "$defs")


def schema_of(kind: str) -> Schema:
    """The JSON Schema of a kind of spec, whose folder has the name ``kind``."""
    schema = KINDS[kind].model_json_schema(schema_generator=_TomlSchemaGenerator)
    tidied = _tidied(schema, schema.get("$defs", {}))
    assert isinstance(tidied, dict), "a model is a table"
    properties = tidied["properties"]
    for name in _LAST:
        properties |= {name: properties.pop(name)} if name in properties else {}
    return {"$schema": DIALECT, "title": f"epochcost {SINGULAR[kind]}", **tidied}


def schema_files() -> dict[str, str]:
    """The text of each schema, by its file name, such as ``price.json``."""
    return {
        f"{name}.json": json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"
        for kind, name in SINGULAR.items()
    }


class _TomlSchemaGenerator(GenerateJsonSchema):
    """Generate schemas for TOML files, in which decimals are numbers and null does not exist."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        number: JsonSchemaValue = {"type": "number"}
        for key in _BOUNDS:
            bound = schema.get(key)
            if isinstance(bound, int | Decimal):
                number[key] = _number(bound)
        return number

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
    return _simplify_keywords(_rename_bounds(tidied))


def _rename_bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """Give bounds their JSON Schema names; drop inclusive bounds that exclusive bounds imply."""
    renamed = {_BOUNDS.get(key, key): value for key, value in schema.items()}
    if renamed.get("exclusiveMinimum") == renamed.get("minimum"):
        renamed.pop("minimum", None)
    if "exclusiveMaximum" in renamed:
        renamed.pop("maximum", None)
    if renamed.get("type") == "array" and "minLength" in renamed:
        renamed["minItems"] = renamed.pop("minLength")
    return renamed


def _simplify_keywords(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace ``const`` by ``enum``, write descriptions in Markdown, and drop empty defaults."""
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if schema.get("default", ...) in (None, [], {}):
        del schema["default"]
    if isinstance(schema.get("description"), str):
        schema["description"] = inspect.cleandoc(schema["description"]).replace("``", "`")
    return schema


_INTRODUCTION = """\
# Keys of the specs

This page lists every key of every kind of spec. `epochcost schema` generates this page and the
[schemas](#in-an-editor) from the Python classes with which `epochcost check` validates specs.
Further rules are not listed: some keys belong together or exclude each other, and each id that
refers to a spec must exist. If a spec breaks such a rule, `epochcost check` reports the line.

Amounts are read as decimal numbers, exactly as written. Dates have no quotes. A key that is not
listed is a fault.

## In an editor

The first line of a spec names its schema, so that editors complete keys and show descriptions:

```toml
#:schema ../../docs/schemas/price.json
```

Even Better TOML in VS Code reads this line, and so does every editor with
[taplo](https://taplo.tamasfe.dev). `epochcost new` writes this line. The schemas are in JSON
Schema's draft 7:
"""

_TYPES = {
    "boolean": "`true` or `false`",
    "integer": "whole number",
    "number": "number",
    "object": "table",
    "string": "text",
}


def reference_page() -> str:
    """The whole reference page of spec keys, in Markdown."""
    links = (f"[{name}](../schemas/{name}.json)" for name in SINGULAR.values())
    kinds = (line for kind in SINGULAR for line in _kind(kind))
    return "\n".join((f"{_INTRODUCTION}{', '.join(links)}.", *kinds)) + "\n"


def _kind(kind: str) -> Iterator[str]:
    schema = schema_of(kind)
    yield f"\n## specs/{kind}/\n"
    yield schema["description"]
    yield from _keys(schema)
    yield from _inner_tables("", schema, {})


def _inner_tables(path: str, schema: Schema, headers: dict[str, str]) -> Iterator[str]:
    """The lines about all tables within the table at the dotted key ``path``, at any depth.

    Only the first of several equal tables is described. ``headers`` maps the keys of tables, as
    JSON, to the header of the first table with these keys; the function adds to it.
    """
    for key, value in schema["properties"].items():
        name = f"{path}.{key}" if path else key
        inner = value.get("items", value)
        if isinstance(inner.get("additionalProperties"), dict):
            inner, name = inner["additionalProperties"], f'{name}."…"'
        header = f"`[[{name}]]`" if value.get("type") == "array" else f"`[{name}]`"
        for branch in inner.get("oneOf", [inner]):
            if "properties" in branch:
                full = f"{header}{_variant_suffix(branch)}"
                first = headers.setdefault(json.dumps(branch["properties"]), full)
                yield f"\n### {full}\n"
                if first is not full:
                    yield f"The same as {first}."
                    continue
                yield branch["description"]
                yield from _keys(branch)
                yield from _inner_tables(name, branch, headers)


def _variant_suffix(table: Schema) -> str:
    """Heading words for the values that a table's key ``name`` allows; empty if it allows any."""
    names = table["properties"].get("name", {}).get("enum", ())
    return f" named {_choices(names)}" if names else ""


def _keys(table: Schema) -> Iterator[str]:
    required = table.get("required", ())
    yield "\n| key | meaning | value | default |\n| --- | --- | --- | --- |"
    for key, value in table["properties"].items():
        default = f"`{_toml(value['default'])}`" if "default" in value else ""
        absent = "required" if key in required else default
        first_line = value["description"].partition("\n\n")[0].replace("\n", " ")
        yield f"| `{key}` | {_escaped(first_line)} | {_escaped(_value(value))} | {absent} |"


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _value(value: Schema) -> str:
    kind = _kind_of_value(value)
    example = next(iter(value.get("examples", ())), None)
    if example is None:
        return kind
    return f"{kind}, such as `{example if kind == 'date' else _toml(example)}`"


def _kind_of_value(value: Schema) -> str:
    if "oneOf" in value:
        return " or ".join(dict.fromkeys(map(_kind_of_value, value["oneOf"])))
    if "enum" in value:
        return _choices(value["enum"])
    if value["type"] == "array":
        return f"array of {_plural_type_name(_kind_of_value(value['items']))}"
    if value.get("format") == "date":
        return "date"
    return _TYPES[value["type"]] + _range(value)


def _plural_type_name(kind: str) -> str:
    """The plural of a type, such as "texts" for "text"; lists of allowed values stay unchanged."""
    return kind if kind.startswith("`") else re.sub(r"(text|number|table)", r"\1s", kind, count=1)


def _range(value: Schema) -> str:
    return "".join(
        f" {word} {value[key]:,}"
        for key, word in (
            ("minimum", "from"),
            ("exclusiveMinimum", "above"),
            ("maximum", "to"),
            ("exclusiveMaximum", "below"),
        )
        if key in value and abs(value[key]) < LARGEST
    )


def _choices(names: Sequence[str]) -> str:
    return either([f"`{_toml(name)}`" for name in names])


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
