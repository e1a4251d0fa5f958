"""A new spec from options, and from a person's answers at a terminal where they were left out.

Where nobody can be asked, all that is missing is told at once.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from epochcost.errors import InputError, UsageError
from epochcost.specs.draft import new_spec
from epochcost.specs.schema import schema_of
from epochcost.units import parse_share

Id = Annotated[str | None, typer.Option("--id", help="The id, which names the file.")]
Name = Annotated[str | None, typer.Option(help="What people call it.")]
Source = Annotated[str | None, typer.Option(help="Where the numbers were read.")]
_NONE: Mapping[str, str] = MappingProxyType({})


def answered(
    kind: str, given: Mapping[str, str | None], defaults: Mapping[str, str] = _NONE
) -> dict[str, Any]:
    """The values of a spec's keys as given; those that a spec must have are asked for.

    Raises as `require` does where one is missing that has no default.
    """
    schema = schema_of(kind)
    wanted = {key for key, text in given.items() if text is None} & {*schema["required"]}
    require({key: defaults.get(key) for key in given if key in wanted})
    values: dict[str, Any] = {}
    for key, known in given.items():
        property_ = schema["properties"][key]
        text = known
        if key in wanted:
            text = asked(key, property_["description"], defaults.get(key))
        values[key] = None if text is None else typed(text, property_)
    return values


def require(given: Mapping[str, object]) -> None:
    """Raise UsageError with every option that is missing, unless a person can be asked."""
    missing = [f"--{key.replace('_', '-')}" for key, value in given.items() if not value]
    if missing and not sys.stdin.isatty():
        raise UsageError(f"missing: {', '.join(missing)} (not a terminal, so I cannot ask)")


def asked(key: str, question: str, default: str | None = None) -> str:
    """The answer of a person at the terminal, else the default; raises as `require` does."""
    require({key: default})
    if not sys.stdin.isatty():
        return default or ""
    answer: str = typer.prompt(f"{question}\n{key}", default=default)
    return answer


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
