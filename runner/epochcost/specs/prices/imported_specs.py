"""Make specs of imported prices; a price that others contradict gets the reason for doubt.

The spec of a new price is a copy of an earlier spec with its comments, in which the changed values
are replaced. This module writes no files: it returns paths and texts, which the command line
writes. A stored amount is never edited: a different amount becomes a new spec with a later
``as_of``, and the spec with the latest ``as_of`` is the current price of its plan. If a table lists
an old price unchanged, that spec gets the date and source of the table.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import tomli

from epochcost.errors import InputError, UsageError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.specs.draft import successor
from epochcost.specs.findings import validate
from epochcost.specs.price import Price
from epochcost.specs.prices.doubts import rented_doubts
from epochcost.specs.prices.importing import ImportRequest, ImportResult, MatchedPrice
from epochcost.units import FRESH

_DATE = re.compile(r"-\d{4}-\d{2}(-\d{2})?$")
_NOT_IN_ID = re.compile(r"[^a-z0-9._]+")
_Values = dict[str, str | int | Decimal | dt.date | None]
_TERMS_OF_A_PLAN = (
    "sustained_use",
    "interruptions",
    "free_if_taken_back_seconds",
    "maximum_lifetime_seconds",
)
# Seconds within which a spot machine that the provider takes back is free
# (docs.aws.amazon.com, EC2 User Guide, "Billing for interrupted Spot Instances": no charge in the
# first hour, Windows and Linux).
_FREE_IF_TAKEN_BACK = MappingProxyType({"AWS EC2": 3600})
# Leaves room for a day in an id of 80 letters.
_LONGEST_STEM = 69


@dataclass(frozen=True)
class NewSpec:
    """A valid price spec to be written.

    ``doubt`` is the reason why the price cannot be right; empty if there is none. If ``renewed``,
    the spec exists already, and only its date and source change.
    """

    path: Path
    text: str
    price: MatchedPrice
    spec: Price
    doubt: str = ""
    renewed: bool = False

    @property
    def state(self) -> str:
        """What the import did with this row, in a word or two."""
        return "doubted" if self.doubt else "dated anew" if self.renewed else "new"


def new_specs(
    result: ImportResult, catalogue: Catalogue, request: ImportRequest
) -> tuple[NewSpec, ...]:
    """The specs to write.

    They are the specs of all new prices, and of old prices that the tables list unchanged. Raises
    UsageError if the source is missing, and InputError if a spec would be invalid.
    """
    used_ids = set(catalogue.prices)
    specs = []
    for price in result.prices:
        if price.new:
            identifier = _identifier(price, used_ids)
            used_ids.add(identifier)
            specs.append(_new_spec(price, identifier, catalogue, request))
        elif _is_to_renew(price, catalogue, request):
            path = catalogue.files[f"prices/{price.previous_id}"]
            renewed: _Values = {"source": _source(price, request), "as_of": price.key.as_of}
            specs.append(_valid_spec(path, renewed, path, price, renewed=True))
    prices = {price.id: price for price in catalogue.prices.values() if not price.doubt}
    prices |= {spec.spec.id: spec.spec for spec in specs}
    judged = {spec.spec.id for spec in specs}
    doubts = rented_doubts(prices.values(), catalogue.hardware, judged)
    return tuple(replace(spec, doubt=doubts.get(spec.spec.id, "")) for spec in specs)


def _is_to_renew(price: MatchedPrice, catalogue: Catalogue, request: ImportRequest) -> bool:
    """Whether the date of a stored price is renewed: a row lists the same price at a later date."""
    stored = catalogue.prices.get(price.previous_id or "")
    old = stored is not None and request.today - stored.as_of > FRESH
    return old and stored is not None and stored.as_of < price.key.as_of


def _identifier(price: MatchedPrice, used_ids: Collection[str]) -> str:
    """The id of the new spec: the id of the copied spec, with the new month.

    If plan or region differ from the copied spec's, the id names them.
    """
    key, model = price.key, price.model
    stem = _DATE.sub("", model.id)
    other_place = (model.region or "") != key.region
    if model.plan != key.plan or other_place:
        place = f"-{_NOT_IN_ID.sub('-', key.region.lower())}" if other_place else ""
        term = f"-{key.months}m" if key.months else ""
        stem = f"{key.hardware}-{key.plan}{term}{place}"[:_LONGEST_STEM]
    monthly = f"{stem}-{key.as_of:%Y-%m}"
    return f"{stem}-{key.as_of}" if monthly in used_ids else monthly


def _new_spec(
    price: MatchedPrice, identifier: str, catalogue: Catalogue, request: ImportRequest
) -> NewSpec:
    model_path = catalogue.files[f"prices/{price.model.id}"]
    changed: _Values = _terms_of_another_plan(price) if price.key.plan != price.model.plan else {}
    changed |= {
        "id": identifier,
        "plan": price.key.plan,
        "commitment.hourly" if price.key.months else "amount": price.amount,
        "source": _source(price, request),
        "as_of": price.key.as_of,
    }
    if price.key.region:
        changed["region"] = price.key.region
    return _valid_spec(model_path, changed, model_path.with_name(f"{identifier}.toml"), price)


def _terms_of_another_plan(price: MatchedPrice) -> _Values:
    """The changes of terms that are needed if a spec is copied for another plan of its machine."""
    terms: _Values = dict.fromkeys(_TERMS_OF_A_PLAN)
    if price.key.plan == "spot" and price.model.provider in _FREE_IF_TAKEN_BACK:
        terms["free_if_taken_back_seconds"] = _FREE_IF_TAKEN_BACK[price.model.provider]
    return terms


def _source(price: MatchedPrice, request: ImportRequest) -> str:
    source = price.row.source or request.source
    if source is None:
        raise UsageError(
            f"{display_path(price.row.path)}: --source is required, as the table names no source: "
            "a repository with its commit and path, or an address"
        )
    return source


def _valid_spec(
    model: Path, changed: _Values, path: Path, price: MatchedPrice, *, renewed: bool = False
) -> NewSpec:
    text = successor(model.read_text(encoding="utf-8"), changed)
    judged = validate(Price, tomli.loads(text, parse_float=Decimal))
    if isinstance(judged, tuple):
        raise InputError(f"{display_path(path)}: would be unsound: {'; '.join(map(str, judged))}")
    return NewSpec(path, text, price, judged, renewed=renewed)
