"""In which keys two versions of a spec differ, in words: ``amount 0.9 → 0.8``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from epochcost.specs.base import Identity
from epochcost.specs.wording import shown
from epochcost.units import plain

_MOST_KEYS = 3
# What a spec says about itself changes no cost.
_SAID = frozenset({"id", "name", "notes", "source", "unconfirmed", "as_of", "valid_until"})


def changed_keys(before: BaseModel, after: BaseModel, within: str = "") -> str:
    """The keys whose values differ, names and sources aside; empty where there is none."""
    if before == after:
        return ""
    one, other = _leaves_of(Identity(before)), _leaves_of(Identity(after))
    words = [
        f"{key} {_value(one.get(key))} → {_value(other.get(key))}"
        for key in {**one, **other}
        if one.get(key) != other.get(key) and key.startswith(within)
    ]
    more = len(words) - _MOST_KEYS
    return ", ".join(words[:_MOST_KEYS]) + (f" and {more} more" if more > 0 else "")


# One spec is behind many costs.
@lru_cache(maxsize=64)
def _leaves_of(spec: Identity[BaseModel]) -> Mapping[str, Any]:
    return dict(_leaves(spec.value.model_dump()))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that holds no other, by its dotted key; empty tables and arrays have none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if path or key not in _SAID:
                yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _value(value: Any) -> str:
    if value is None:
        return "—"
    return plain(value) if isinstance(value, Decimal) and value.is_finite() else shown(value)
