"""Short, printable texts for messages about faults: TOML values, key paths and suggestions."""

from __future__ import annotations

import datetime as dt
import difflib
import json
import re
from collections.abc import Iterable
from typing import Any

from epochcost.units import render_some

KeyPath = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_TEXT = 60
_MOST_CHOICES = 13
_MOST_SUGGESTED = 3
# Long ids often have equal ends, such as -on-demand-2026-11, and so must be more similar.
_LONG_WORD, _LIKE, _LONG_LIKE = 12, 0.65, 0.7
_LEAST_PART = 3
_BETWEEN = re.compile(r"[-._ ]")
# Words that users write, and the words of specs with the same meaning.
_MEANT = {
    "gpu": "cuda",
    "gpus": "accelerators",
    "hourly": "whole-hour",
    "machine": "hardware",
    "preemptible": "spot",
    "serve": "inference",
    "serving": "inference",
}
# Python does not print integers of more than 4300 digits.
_LARGEST_SHOWN = 10**20


def describe(value: Any) -> str:
    """Describe a TOML value in a few words: a text in quotes, a table or array by its type."""
    match value:
        case str():
            return _quoted(value)
        case dict():
            return "a table"
        case list() | tuple():
            return f"an array of {len(value)}" if value else "an empty array"
        case int() if abs(value) > _LARGEST_SHOWN:
            return "a huge whole number"
        case dt.date() | dt.time():
            return value.isoformat()
    return str(value).lower()


def _quoted(text: str) -> str:
    short = text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
    if '"' in short and "'" not in short and short.isprintable():
        return f"'{short}'"  # a literal string of TOML: it has no escapes
    return json.dumps(short, ensure_ascii=not short.isprintable())


def printable(text: str) -> str:
    """Make a text printable on any terminal: file names may contain line ends, or not be UTF-8."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_key_path(path: KeyPath) -> str:
    """A key path as text, such as ``timings[2].price``, in which items count from 0."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in path]
    return "".join(parts).removeprefix(".")


def _key(part: str) -> str:
    return part if _BARE_KEY.fullmatch(part) and len(part) <= _LONGEST_TEXT else _quoted(part)


def suggest_or_list(word: str, choices: Iterable[str]) -> str:
    """Suggest the choices most similar to a word, else list all choices; empty without choices."""
    ordered = sorted(choices, key=lambda choice: (word.casefold() not in choice.casefold(), choice))
    return suggestion(word, ordered) or (f"; known: {join_choices(ordered)}" if ordered else "")


def got(word: str, choices: Iterable[str]) -> str:
    """The end of a message about a word that is none of the choices, with their suggestion."""
    return f"got {describe(word)}{suggest_or_list(word, choices)}"


def suggestion(word: str, choices: Iterable[str]) -> str:
    """The text ``; did you mean "x"?`` if choices are similar to the word, else an empty text."""
    near = _nearest_first(word, choices)[:_MOST_SUGGESTED]
    return f"; did you mean {' or '.join(map(describe, near))}?" if near else ""


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The shortest choice that contains ``word``, else the most similar choice, else None."""
    return next(iter(_nearest_first(word, choices)), None)


def _nearest_first(word: str, choices: Iterable[str]) -> list[str]:
    by_folded = {choice.casefold(): choice for choice in choices}
    folded = word[:_LONGEST_TEXT].casefold()
    meant = _MEANT.get(folded, folded)
    if meant in by_folded:
        return [by_folded[meant]]
    part = _BETWEEN.sub("", folded)
    near = sorted((choice for choice in by_folded if part in _BETWEEN.sub("", choice)), key=len)
    if not near or len(part) < _LEAST_PART:
        cutoff = _LONG_LIKE if len(folded) >= _LONG_WORD else _LIKE
        near = difflib.get_close_matches(folded, list(by_folded), n=1, cutoff=cutoff)
    return [by_folded[choice] for choice in near]


def join_choices(choices: Iterable[str]) -> str:
    """Join the choices in quotes, separated by commas; a long list is shortened."""
    return render_some(map(describe, choices), _MOST_CHOICES)
