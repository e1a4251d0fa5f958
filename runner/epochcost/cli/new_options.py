"""A new spec from options; all that are missing are named at once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcost.errors import InputError, UsageError
from epochcost.specs.draft import new_spec
from epochcost.specs.schema import schema_of
from epochcost.units import parse_share

Id = Annotated[str | None, typer.Option("--id", help="The id, which names the file.")]
Name = Annotated[str | None, typer.Option(help="What people call it.")]
Source = Annotated[str | None, typer.Option(help="Where the numbers were read.")]


def spec_values(kind: str, given: Mapping[str, str | None]) -> dict[str, Any]:
    """The values of a spec's keys, typed; raises as `require` does where a needed key is None."""
    schema = schema_of(kind)
    require({key: given[key] for key in given if key in schema["required"]})
    properties = schema["properties"]
    return {
        key: None if text is None else typed(text, properties[key]) for key, text in given.items()
    }


def require(given: Mapping[str, object]) -> None:
    """Raise UsageError that names every option without a value."""
    missing = [f"--{key.replace('_', '-')}" for key, value in given.items() if not value]
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}")


def typed(text: str, property_: Mapping[str, Any]) -> Any:
    """A text as the type that a key demands; as it is where it does not fit, which is judged."""
    try:
        match property_.get("type"):
            case "number":
                return parse_share(text, "share") if text.endswith("%") else Decimal(text)
            case "integer":
                return int(text)
        return dt.date.fromisoformat(text) if property_.get("format") == "date" else text
    except (InputError, InvalidOperation, ValueError):
        return text


def write(kind: str, values: dict[str, Any]) -> None:
    """Write the spec into the project, and say where; raises as ``new_spec`` does."""
    path = new_spec(Path.cwd(), kind, values)
    typer.echo(f"{path.relative_to(Path.cwd())} is new: review it, then run epochcost check")
