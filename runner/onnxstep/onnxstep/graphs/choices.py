"""Select names by exact name or shell pattern; errors list the possible names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TypeVar

from onnxstep.errors import ModelError

T = TypeVar("T")
_MOST_LISTED, _NEAREST, _FIRST = 16, 6, 8


def choose(kind: str, table: Mapping[str, T], name: str) -> T:
    """``table[name]``; for an unknown name, raises ModelError that lists the names in the table.

    ``kind`` says in the message what the name stands for, such as "loss".
    """
    if name not in table:
        raise unknown_name(kind, name, table)
    return table[name]


def match_names(kind: str, patterns: Iterable[str], choices: Collection[str]) -> frozenset[str]:
    """The names in ``choices`` that equal or match a pattern, such as ``encoder.*``.

    ``kind`` says in the message what the names are. Raises ModelError if a pattern has no match.
    """
    chosen: set[str] = set()
    names = frozenset(choices)
    for pattern in patterns:
        # A pattern that is also a name, such as "w[0]", selects only this name.
        named = pattern in names
        matched = {pattern} if named else {n for n in choices if fnmatchcase(n, pattern)}
        if not matched:
            raise unknown_name(kind, pattern, choices)
        chosen |= matched
    return frozenset(chosen)


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> ModelError:
    """The error for the unknown ``name``; its message lists choices and suggests the nearest."""
    names = list(choices)
    if not names:
        problem = "is unknown; there is nothing to choose from: leave it out"
        return ModelError(f"{kind} {name!r} {problem}")
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if len(names) <= _MOST_LISTED:
        listed = ", ".join(names)
    else:
        nearest = get_close_matches(name, names, n=_NEAREST, cutoff=0.0)
        listed = f"{', '.join(nearest)} and {len(names) - len(nearest)} more"
    return ModelError(f"{kind} {name!r} is unknown; choices are {listed}{hint}")


def first_names(names: Collection[str]) -> str:
    """The first 8 names, joined by commas, and the number of further names."""
    more = len(names) - _FIRST
    return ", ".join([*names][:_FIRST]) + (f" and {more} more" if more > 0 else "")
