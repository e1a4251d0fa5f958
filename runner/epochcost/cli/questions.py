"""What a command still has to know: taken from its options, or asked where somebody can answer."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import typer

from epochcost.errors import InputError, UsageError


def answered(kind: str, given: Mapping[str, str | None]) -> dict[str, Any]:
    """The values of a spec's keys as given; those that a spec must have are asked for.

    Raises UsageError, which names the option, where one is missing and nobody can be asked.
    """
    from epochcost.specs.schema import schema_of

    schema = schema_of(kind)
    values: dict[str, Any] = {}
    for key, known in given.items():
        property_ = schema["properties"][key]
        text = known
        if known is None and key in schema["required"]:
            text = asked(key, property_["description"])
        values[key] = None if text is None else typed(text, property_)
    return values


def asked(key: str, question: str, default: str | None = None) -> str:
    """The answer of a person at the terminal, else the default; raises UsageError without one."""
    if sys.stdin.isatty():
        answer: str = typer.prompt(f"{question}\n{key}", default=default)
        return answer
    if default is None:
        option = "--" + key.replace("_", "-")
        raise UsageError(f"{option}: demanded where nobody can be asked; got none")
    return default


def pairs(option: str, given: Sequence[str], example: str) -> dict[str, str]:
    """What a repeatable option of the form name=value says; InputError unless each name is new."""
    found: dict[str, str] = {}
    for text in given:
        name, _, value = text.partition("=")
        if not name or not value:
            raise InputError(f"{option}: demanded name=value, such as {example}; got {text!r}")
        if name in found:
            raise InputError(f"{option}: demanded each name once; got {name!r} twice")
        found[name] = value
    return found


def typed(text: str, property_: Mapping[str, Any]) -> Any:
    """A text as the type that a key demands; as it is where it does not fit, which is judged."""
    try:
        match property_.get("type"):
            case "number":
                return Decimal(text)
            case "integer":
                return int(text)
        return dt.date.fromisoformat(text) if property_.get("format") == "date" else text
    except (InvalidOperation, ValueError):
        return text
