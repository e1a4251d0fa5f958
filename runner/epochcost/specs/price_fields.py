"""Read a number of a price plan by its key path, or replace it and validate the plan again.

Paths are written as in error messages: ``owned.utilisation``, ``components[0].amount``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from epochcost.errors import InputError
from epochcost.specs.catalogue import keys_of
from epochcost.specs.findings import validate
from epochcost.specs.price import Price
from epochcost.specs.wording import KeyPath, describe, suggest_or_list

_PATH = re.compile(r"[a-z_]+(\[[0-9]{1,4}\])?(\.[a-z_]+(\[[0-9]{1,4}\])?)*")
_STEP = re.compile(r"[a-z_]+|[0-9]+")


def key_path(text: str) -> KeyPath:
    """Parse a text into keys and array positions; raises ValueError if it is no key path."""
    if not _PATH.fullmatch(text):
        raise ValueError("should be a key path, such as owned.utilisation or components[0].amount")
    return tuple(int(step) if step.isdecimal() else step for step in _STEP.findall(text))


def figure_at(table: Mapping[str, Any], path: KeyPath) -> Decimal:
    """The number at a path of a price's table; raises ValueError if there is no number."""
    value: Any = table
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    *around, last = [step for step in path if isinstance(step, str)]
    choices = keys_of(Price, tuple(around))
    got = describe(".".join((*around, last)))
    if last not in choices:
        raise ValueError(f"should be a key of this spec, got {got}{suggest_or_list(last, choices)}")
    raise ValueError(f"should be the key of a number in this spec, got {got}")


def value_at(price: Price, path: str) -> Decimal:
    """The number at a key path of a price, or the key's default.

    Raises InputError if there is neither.
    """
    try:
        return figure_at(_table(price, key_path(path)), key_path(path))
    except ValueError as error:
        raise InputError(f"{price.id}: {path:.80}: {error}") from None


def with_value(price: Price, path: str, value: Decimal) -> Price:
    """A copy of the price with another number at a key path, validated as a spec.

    Raises InputError if there is no number at the path, or if the new price is invalid; the error
    then lists all its faults.
    """
    value_at(price, path)
    keys = key_path(path)
    table = _table(price, keys)
    inner: Any = table
    for step in keys[:-1]:
        inner = inner[step]
    inner[keys[-1]] = value
    judged = validate(Price, table)
    if isinstance(judged, Price):
        return judged
    assert isinstance(judged, tuple), "a judged price is a price or findings"
    raise InputError("\n".join(f"{price.id}: {finding}" for finding in judged))


def _table(price: Price, path: KeyPath) -> dict[str, Any]:
    """The price as a TOML table.

    If the path leads into ``billing``, a rule that is only named there is written out.
    """
    table: dict[str, Any] = _opened(price.model_dump(exclude_none=True))
    if len(path) > 1 and path[0] == "billing":
        table["billing"] = price.billing_rule.model_dump()
    return table


def _opened(value: Any) -> Any:
    """Copy read-only tables and arrays into dicts and lists that can be changed."""
    if isinstance(value, Mapping):
        return {key: _opened(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_opened(item) for item in value]
    return value
