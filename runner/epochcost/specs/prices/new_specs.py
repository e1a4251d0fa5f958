"""Make the texts of new price specs from the rows of imported price tables.

A new spec is a copy of an earlier spec, comments included, with new values. A stored amount is
never edited: a new amount becomes a new spec with a later ``as_of``. An unchanged price over 60
days old only gets the table's date and source.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import tomli

from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.specs.draft import successor
from epochcost.specs.findings import validated
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
# A spot machine is free if the provider takes it back within these seconds of its start
# (docs.aws.amazon.com, EC2 User Guide, "Billing for interrupted Spot Instances": no charge in the
# first hour, Windows and Linux).
_FREE_IF_TAKEN_BACK = {"AWS EC2": 3600}
# With a day after it, an id has at most 80 letters.
_LONGEST_STEM = 69


@dataclass(frozen=True)
class NewSpec:
    """A valid price spec to write; if ``renewed``, it exists and gets a new date and source."""

    path: Path
    text: str
    price: MatchedPrice
    spec: Price
    doubt: str = ""
    renewed: bool = False

    @property
    def state(self) -> str:
        """The spec's state in a word or two, such as "new"."""
        return "doubted" if self.doubt else "dated anew" if self.renewed else "new"


def new_specs(
    result: ImportResult, catalogue: Catalogue, request: ImportRequest
) -> tuple[NewSpec, ...]:
    """The specs to write after an import of price tables; raises InputError for an invalid spec."""
    used_ids = set(catalogue.prices)
    specs = []
    for price in result.prices:
        if price.new:
            identifier = _new_spec_id(price, request.as_of, used_ids)
            used_ids.add(identifier)
            specs.append(_new_spec(price, identifier, catalogue, request))
        elif _is_due_for_renewal(price, catalogue, request):
            path = catalogue.files[f"prices/{price.previous_id}"]
            renewed: _Values = {"source": request.source, "as_of": request.as_of}
            specs.append(_valid_spec(path, renewed, path, price, renewed=True))
    prices = {price.id: price for price in catalogue.prices.values() if not price.doubt}
    prices |= {spec.spec.id: spec.spec for spec in specs}
    judged = {spec.spec.id for spec in specs}
    doubts = rented_doubts(prices.values(), catalogue.hardware, judged)
    return tuple(
        replace(spec, doubt=doubts[spec.spec.id].message) if spec.spec.id in doubts else spec
        for spec in specs
    )


def _is_due_for_renewal(price: MatchedPrice, catalogue: Catalogue, request: ImportRequest) -> bool:
    """Whether the stored price is older than the table, and dated over 60 days before today."""
    if price.previous_id is None:
        return False
    day = catalogue.prices[price.previous_id].as_of
    return day < request.as_of and request.today - day > FRESH


def _new_spec_id(price: MatchedPrice, day: dt.date, used_ids: Collection[str]) -> str:
    """The id of ``price.model`` with a new date, or an id that names the other plan or region."""
    key, model = price.key, price.model
    stem = _DATE.sub("", model.id)
    other_place = (model.region or "") != key.region
    if model.plan != key.plan or other_place:
        place = f"-{_NOT_IN_ID.sub('-', key.region.lower())}" if other_place else ""
        term = f"-{key.months}m" if key.months else ""
        stem = f"{key.hardware}-{key.plan}{term}{place}"[:_LONGEST_STEM]
    return dated_id(stem, day, used_ids)


def dated_id(stem: str, day: dt.date, used_ids: Collection[str]) -> str:
    """The id of a new price: ``stem`` and the month of ``day``, or ``day`` if that id is used."""
    monthly = f"{stem}-{day:%Y-%m}"
    return f"{stem}-{day}" if monthly in used_ids else monthly


def _new_spec(
    price: MatchedPrice, identifier: str, catalogue: Catalogue, request: ImportRequest
) -> NewSpec:
    model_path = catalogue.files[f"prices/{price.model.id}"]
    changed: _Values = _keys_of_another_plan(price) if price.key.plan != price.model.plan else {}
    changed |= {
        "id": identifier,
        "plan": price.key.plan,
        "commitment.hourly" if price.key.months else "amount": price.amount,
        "source": request.source,
        "as_of": request.as_of,
    }
    if price.key.region:
        changed["region"] = price.key.region
    return _valid_spec(model_path, changed, model_path.with_name(f"{identifier}.toml"), price)


def _keys_of_another_plan(price: MatchedPrice) -> _Values:
    """The keys to change in a copied spec for another plan; the value None removes a key."""
    terms: _Values = dict.fromkeys(_TERMS_OF_A_PLAN)
    if price.key.plan == "spot" and price.model.provider in _FREE_IF_TAKEN_BACK:
        terms["free_if_taken_back_seconds"] = _FREE_IF_TAKEN_BACK[price.model.provider]
    return terms


def _valid_spec(
    model: Path, changed: _Values, path: Path, price: MatchedPrice, *, renewed: bool = False
) -> NewSpec:
    text = successor(model.read_text(encoding="utf-8"), changed)
    table = tomli.loads(text, parse_float=Decimal)
    spec = validated(Price, table, f"{display_path(path)}: would be unsound")
    return NewSpec(path, text, price, spec, renewed=renewed)
