"""Validate a parsed TOML table; pydantic finds the faults, and this module writes the messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from epochcost.errors import InputError
from epochcost.specs.base import NamedSpec, SpecT, ordered_keys_of
from epochcost.specs.wording import (
    KeyPath,
    closest,
    describe,
    format_key_path,
    join_choices,
    suggest_or_list,
    suggestion,
)

# Further faults of a file mostly have the same cause.
MOST_FINDINGS = 100


class Finding(NamedTuple):
    """A fault of a spec, and its key, which the file may lack; () means the whole file."""

    key: KeyPath
    message: str

    def __str__(self) -> str:
        return f"{format_key_path(self.key)}: {self.message}" if self.key else self.message


def validate(kind: type[SpecT], table: Mapping[str, Any]) -> SpecT | tuple[Finding, ...]:
    """The spec that a table states, or the table's faults; other specs are not consulted."""
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        every = error.errors(include_url=False)
    details, more = every[:MOST_FINDINGS], len(every) - MOST_FINDINGS
    intended = {
        _similar_known_key(kind, table, detail)
        for detail in details
        if detail["type"] == "extra_forbidden"
    }
    findings = tuple(
        _finding(kind, table, detail)
        for detail in details
        if not (detail["type"] == "missing" and _key_path_in_file(detail, table) in intended)
    )
    rest = Finding((), f"{more:,} more faults: correct the faults above first")
    return (*findings, rest) if more > 0 else findings


def validated(kind: type[SpecT], table: Mapping[str, Any], name: str) -> SpecT:
    """The spec that a table states; raises InputError with all faults, each after ``name``."""
    judged = validate(kind, table)
    if isinstance(judged, tuple):
        raise InputError("\n".join(f"{name}: {finding}" for finding in judged))
    return judged


def _similar_known_key(
    kind: type[NamedSpec], table: Mapping[str, Any], detail: ErrorDetails
) -> KeyPath | None:
    *around, word = _key_path_in_file(detail, table)
    if around and word in kind.model_fields:
        return (word,)
    near = closest(str(word), ordered_keys_of(kind, detail["loc"][:-1]))
    return None if near is None else (*around, near)


def _finding(kind: type[NamedSpec], table: Mapping[str, Any], detail: ErrorDetails) -> Finding:
    key = _key_path_in_file(detail, table)
    match detail["type"]:
        case "missing":
            return Finding(key, f"required key is missing{_found_in_a_table(key, table)}")
        case "extra_forbidden":
            choices = ordered_keys_of(kind, detail["loc"][:-1])
            advice = _right_table(kind, key) or suggest_or_list(str(key[-1]), choices)
            return Finding(key, f"unknown key{advice}")
        case "union_tag_not_found":
            return Finding((*key, "name"), "required key is missing")
        case "literal_error" | "union_tag_invalid":
            return Finding(*_choice(key, detail))
    demand = _DEMANDS.get(detail["type"], "should be valid").format_map(detail.get("ctx", {}))
    # Messages of our rules about a whole table already name the keys.
    of_table = detail["type"] == "value_error" and isinstance(detail["input"], Mapping)
    got = "" if ", got " in demand or of_table else f", got {describe(detail['input'])}"
    return Finding(key, f"{demand}{got}{_right_brackets(kind, key, detail)}")


def _right_brackets(kind: type[NamedSpec], key: KeyPath, detail: ErrorDetails) -> str:
    header = ".".join(part for part in key if isinstance(part, str))
    if detail["type"] == "tuple_type" and isinstance(detail["input"], dict):
        return f": write its header as [[{header}]]" if ordered_keys_of(kind, key) else ""
    items = detail["input"] if isinstance(detail["input"], list) else ()
    if detail["type"] in _OF_TABLES and any(isinstance(item, dict) for item in items):
        return f": write its header as [{header}]"
    return ""


def _found_in_a_table(key: KeyPath, table: Mapping[str, Any]) -> str:
    """Advice to move a top-level key out of the table in which it was written; empty if in none."""
    for name, value in table.items() if len(key) == 1 else ():
        if isinstance(value, dict) and key[0] in value:
            return (
                f"; {format_key_path((name, *key))} is a key of the table [{name}]: move it above"
            )
    return ""


def _right_table(kind: type[NamedSpec], key: KeyPath) -> str:
    word = str(key[-1])
    if len(key) > 1:
        return "; move it above the first table" if word in kind.model_fields else ""
    tables = [name for name in kind.model_fields if word in ordered_keys_of(kind, (name,))]
    return f"; move it into the table {' or '.join(tables)}" if tables else ""


def _key_path_in_file(detail: ErrorDetails, table: Mapping[str, Any]) -> KeyPath:
    path: list[str | int] = []
    value: Any = table
    # The path from pydantic also has the names of union members.
    for part in detail["loc"]:
        if _holds(value, part):
            path.append(part)
            value = value[part]
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else tuple(path)


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(value, list | tuple) and part < len(value)
    return isinstance(value, dict) and part in value


def _choice(key: KeyPath, detail: ErrorDetails) -> tuple[KeyPath, str]:
    context, got = detail["ctx"], detail["input"]
    if detail["type"] == "union_tag_invalid":
        key, got = (*key, "name"), got["name"]
    choices = re.findall(r"'([^']+)'", context.get("expected_tags") or context["expected"])
    demand = f"should be {'one of ' if len(choices) > 1 else ''}{join_choices(choices)}"
    near = suggestion(got, choices) if isinstance(got, str) else ""
    return key, f"{demand}, got {describe(got)}{near}"


_OF_TABLES = ("dict_type", "model_type", "model_attributes_type")
# The demand in our message for each type of error from pydantic.
_DEMANDS: Mapping[str, str] = {
    "string_type": "should be a text in quotes",
    "int_type": "should be a whole number",
    "int_parsing_size": "should be a smaller number",
    "is_instance_of": "should be a number",  # only Decimal is required as a class
    "finite_number": "should be a finite number",
    "bool_type": "should be true or false",
    "date_type": "should be a date without quotes, such as 2016-11-01",
    "tuple_type": "should be an array in square brackets",
    **dict.fromkeys(_OF_TABLES, "should be a table"),
    "greater_than": "should be greater than {gt}",
    "greater_than_equal": "should be at least {ge}",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be at most {le}",
    "string_too_short": "should have at least {min_length} characters",
    "string_too_long": "should have at most {max_length} characters",
    "too_short": "should have at least {min_length} item",
    "value_error": "{error}",
}
