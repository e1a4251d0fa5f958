"""A price spec written from an earlier one: the same keys in the same order, with its comments."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import tomlkit
from tomlkit.items import Item

from epochcost.units import plain

# What speaks of the earlier price only, and is no fact of its successor.
_OF_THE_OLD = ("valid_until",)
# Two decimals at least, as price lists print them.
_PLACES = 2


def successor(text: str, changed: Mapping[str, str | Decimal | dt.date]) -> str:
    """The TOML text of a price spec with some of its values replaced.

    Comments and the order of keys stay. The comment behind a replaced value goes with it, for it
    says how the old value came about; so do ``valid_until`` and what ``unconfirmed`` says of
    replaced keys. Raises KeyError for a key that the earlier spec has not.
    """
    document = tomlkit.parse(text)
    for key, value in changed.items():
        if document[key].unwrap() != value:
            document[key] = _item(value)
            _without_comment(document[key])
    for key in _OF_THE_OLD:
        document.pop(key, None)
    _confirm(document, changed)
    return tomlkit.dumps(document)


def _item(value: str | Decimal | dt.date) -> Item:
    if not isinstance(value, Decimal):
        return tomlkit.item(value)
    digits = plain(value)
    places = len(digits.partition(".")[2])
    return tomlkit.value(digits if places >= _PLACES else f"{value:.{_PLACES}f}")


def _without_comment(item: Any) -> None:
    item.trivia.comment_ws = item.trivia.comment = ""


def _confirm(document: tomlkit.TOMLDocument, changed: Mapping[str, object]) -> None:
    """Take the replaced keys out of ``unconfirmed``, and the key with its last item."""
    listed = document.get("unconfirmed")
    if listed is None:
        return
    kept = [name for name in listed if re.split(r"\.", name)[0] not in changed]
    if not kept:
        document.pop("unconfirmed")
    elif len(kept) < len(listed):
        document["unconfirmed"] = kept
