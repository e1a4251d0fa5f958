"""Rows of price tables beside the catalogue: which prices are new, unchanged, unmatched, unsound.

A new price's spec is written from an earlier one: the same keys in the same order, with its
comments.

Pure: the answer says which files would be written with which text; the command line writes them. A
price that is known is never changed: another amount becomes a spec of its own with its own date,
and the newest ``as_of`` of a plan is the current price everywhere.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import tomli
import tomlkit
from tomlkit.items import Item

from epochcost.errors import Fault, InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.specs.findings import validate
from epochcost.specs.price import Price
from epochcost.specs.prices.matching import (
    ImportRequest,
    MachineIndex,
    amount_of,
    date_of,
    source_of,
)
from epochcost.specs.prices.tables import ListedPlan, ListedPrice, shown_sku
from epochcost.units import plain

# What speaks of the earlier price only, and is no fact of its successor.
_OF_THE_OLD = ("valid_until",)
# Two decimals at least, as price lists print them.
_PLACES = 2
_DATE = re.compile(r"-\d{4}-\d{2}(-\d{2})?$")
_NOT_IN_ID = re.compile(r"[^a-z0-9._]+")
# A day follows it, and an id has 80 letters.
_LONGEST_STEM = 69


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


class Key(NamedTuple):
    """One price at one date: what may stand once in the tables. ``region`` is "" for any."""

    hardware: str
    plan: ListedPlan
    region: str
    as_of: dt.date


@dataclass(frozen=True)
class MatchedPrice:
    """A sound row of a machine of the catalogue.

    ``model`` is the price that a new one is written after; ``known`` the amount that the catalogue
    has for the day, and ``known_id`` the price that says so, None where there is none.
    """

    key: Key
    amount: Decimal
    row: ListedPrice
    model: Price
    known: Decimal | None = None
    known_id: str | None = None

    @property
    def new(self) -> bool:
        """Whether the catalogue has another amount for the day, or none."""
        return self.known != self.amount


@dataclass(frozen=True)
class ImportResult:
    """All rows, sorted: those found, the unmatched by reason and machine type, and faults."""

    rows: int
    found: tuple[MatchedPrice, ...]
    unmatched: Mapping[str, Counter[str]]
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class NewSpec:
    """A price spec to be written, sound by itself."""

    path: Path
    text: str
    found: MatchedPrice


def sort_rows(
    rows: Iterable[ListedPrice | Fault], catalogue: Catalogue, request: ImportRequest
) -> ImportResult:
    """Sort the rows of price tables by what the catalogue can do with them.

    Raises UsageError where neither the rows nor the request name the provider or date, and
    InputError where not one row is of a machine of the catalogue.
    """
    machines = MachineIndex(catalogue, request)
    sorter = _Sorter(machines, request)
    for row in rows:
        sorter.take(row)
    found, late_faults = _placed_in_time(sorter.sound(), machines)
    faults = (*sorter.faults, *late_faults)
    if not found and not faults:
        raise InputError(_nothing(sorter))
    return ImportResult(sorter.rows, found, MappingProxyType(sorter.unmatched), faults)


@dataclass
class _Sorter:
    """What has been seen of the rows so far; only rows of known machines are kept."""

    machines: MachineIndex
    request: ImportRequest
    rows: int = 0
    unmatched: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    faults: list[Fault] = field(default_factory=list)
    _found: dict[Key, MatchedPrice] = field(default_factory=dict)
    _contradicted: set[Key] = field(default_factory=set)

    def take(self, row: ListedPrice | Fault) -> None:
        """Sort one row."""
        self.rows += 1
        if isinstance(row, Fault):
            self.faults.append(row)
        elif self.machines.wants(row):
            match = self.machines.match(row)
            if isinstance(match, str):
                self.unmatched[match][row.sku] += 1
            else:
                self._keep(row, match.model, match.region or "")

    def sound(self) -> list[MatchedPrice]:
        """The rows that no other contradicts, in the order of machines, plans and days."""
        return [self._found[key] for key in sorted(self._found) if key not in self._contradicted]

    def _keep(self, row: ListedPrice, model: Price, region: str) -> None:
        try:
            amount, as_of = amount_of(row.amount), date_of(row, self.request)
        except ValueError as error:
            self.faults.append(_fault(row, str(error)))
            return
        key = Key(model.hardware, row.plan, region, as_of)
        other = self._found.setdefault(key, MatchedPrice(key, amount, row, model))
        if other.amount != amount:
            self._contradicted.add(key)
            self.faults.append(_fault(row, _contradiction(row, other)))


class _Said(NamedTuple):
    as_of: dt.date
    amount: Decimal
    identifier: str


def _placed_in_time(
    rows: Iterable[MatchedPrice], machines: MachineIndex
) -> tuple[tuple[MatchedPrice, ...], list[Fault]]:
    """The rows beside what was known for their day, from the catalogue and from earlier rows."""
    series: dict[tuple[str, ...], list[_Said]] = {}
    placed: list[MatchedPrice] = []
    faults: list[Fault] = []
    for found in rows:
        key = found.key
        known = series.setdefault((*key[:3],), sorted(_series(machines, key)))
        said = _said_for(key.as_of, known)
        same = said is not None and said.amount == found.amount
        if said and said.as_of == key.as_of and not same:
            demand = f"expected the {said.amount} of {said.identifier}, which is of the same day"
            faults.append(_fault(found.row, f"{demand}, got {found.amount}"))
            continue
        if not same:
            known.append(_Said(key.as_of, found.amount, "this import"))
            known.sort()
        placed.append(
            replace(found, known=said.amount, known_id=said.identifier) if said else found
        )
    return tuple(placed), faults


def _series(machines: MachineIndex, key: Key) -> Iterator[_Said]:
    """The dated amounts of a plan in a place; a price that names no region is of any."""
    for price in machines.prices[key.hardware, key.plan]:
        if price.amount is not None and (price.region or "") in {key.region, ""}:
            yield _Said(price.as_of, price.amount, price.id)


def _said_for(day: dt.date, series: Sequence[_Said]) -> _Said | None:
    """The newest price until a day; before the first of all, the first."""
    earlier = [said for said in series if said.as_of <= day]
    return earlier[-1] if earlier else series[0] if series else None


def new_specs(
    result: ImportResult, catalogue: Catalogue, request: ImportRequest
) -> tuple[NewSpec, ...]:
    """The specs to write for all new prices, each after the price that it continues.

    Raises UsageError where nobody says the source, and InputError where a spec would be unsound.
    """
    taken = set(catalogue.prices)
    specs = []
    for found in result.found:
        if found.new:
            identifier = _identifier(found, taken)
            taken.add(identifier)
            specs.append(_new_spec(found, identifier, catalogue, request))
    return tuple(specs)


def _identifier(found: MatchedPrice, taken: Collection[str]) -> str:
    """The model's id with the new month, with plan and region where they are others."""
    key, model = found.key, found.model
    stem = _DATE.sub("", model.id)
    if model.plan != key.plan or (model.region or "") != key.region:
        other_place = (model.region or "") != key.region
        place = f"-{_NOT_IN_ID.sub('-', key.region.lower())}" if other_place else ""
        stem = f"{key.hardware}-{key.plan}{place}"[:_LONGEST_STEM]
    monthly = f"{stem}-{key.as_of:%Y-%m}"
    return f"{stem}-{key.as_of}" if monthly in taken else monthly


def _new_spec(
    found: MatchedPrice, identifier: str, catalogue: Catalogue, request: ImportRequest
) -> NewSpec:
    model_path = catalogue.files[f"prices/{found.model.id}"]
    path = model_path.with_name(f"{identifier}.toml")
    changed: dict[str, str | Decimal | dt.date] = {
        "id": identifier,
        "plan": found.key.plan,
        "amount": found.amount,
        "source": source_of(found.row, request),
        "as_of": found.key.as_of,
    }
    if found.key.region:
        changed["region"] = found.key.region
    text = successor(model_path.read_text(encoding="utf-8"), changed)
    judged = validate(Price, tomli.loads(text, parse_float=Decimal))
    if isinstance(judged, tuple):
        raise InputError(f"{display_path(path)}: would be unsound: {'; '.join(map(str, judged))}")
    return NewSpec(path, text, found)


def _contradiction(row: ListedPrice, other: MatchedPrice) -> str:
    zones = " (zones differ: choose one with --zone)" if row.zone != other.row.zone else ""
    key = other.key
    of = f"{key.hardware} in {key.region or 'any region'} on {key.as_of}"
    first = f"{other.row.amount} in {display_path(other.row.path)}:{other.row.line}"
    return f"expected one price of {of}, got {row.amount} here and {first}{zones}"


def _fault(row: ListedPrice, message: str) -> Fault:
    return Fault(display_path(row.path), row.line, 1, f"{shown_sku(row.sku)} {row.plan}: {message}")


def _nothing(sorter: _Sorter) -> str:
    reasons = "; ".join(
        f"{names.total():,}: {reason}" for reason, names in sorter.unmatched.items()
    )
    asked = "are --provider and --region right?"
    got = f"found none among {sorter.rows:,}{f' ({reasons})' if reasons else ''}"
    return f"expected prices of machines in specs/hardware; {got}: {asked}"
