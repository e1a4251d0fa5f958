"""Picking by name out of what there is, and saying what there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from epochcost.errors import ModelError

T = TypeVar("T")


def chosen(kind: str, table: Mapping[str, T], name: str) -> T:
    """``table[name]``; raises ModelError with the choices and the nearest otherwise."""
    if name not in table:
        raise unknown(kind, name, table)
    return table[name]


def unknown(kind: str, name: str, choices: Iterable[str]) -> ModelError:
    """The error for a name that is none of the choices."""
    known = list(choices)
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ModelError(f"{kind} {name!r} is unknown; choices are {', '.join(known)}{hint}")
