"""The kinds of spec: a folder of `specs/` each, and the keys that each may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from epochcost.specs.base import NamedSpec, Spec
from epochcost.specs.currency import ExchangeRate
from epochcost.specs.dataset import Dataset
from epochcost.specs.device import Device
from epochcost.specs.grid import Grid
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.observation import ObservationTable
from epochcost.specs.price import Price
from epochcost.specs.published import Published
from epochcost.specs.study import Study
from epochcost.specs.wording import KeyPath

KINDS: Mapping[str, type[NamedSpec]] = MappingProxyType(
    {
        "hardware": Hardware,
        "prices": Price,
        "currencies": ExchangeRate,
        "grids": Grid,
        "datasets": Dataset,
        "models": Model,
        "studies": Study,
        "published": Published,
        "devices": Device,
        "observations": ObservationTable,
    }
)
# Folders whose meaning is settled and whose specs this version cannot read yet.
RESERVED = ("targets",)


def keys_of(spec: type[Spec], path: KeyPath = ()) -> frozenset[str]:
    """The keys that the table at a path may hold; none where the path leads to no table."""
    return frozenset(ordered_keys_of(spec, path))


def ordered_keys_of(spec: type[Spec], path: KeyPath = ()) -> tuple[str, ...]:
    """The keys that the table at a path may hold, in the order in which a spec gives them.

    Positions in arrays do not matter. A part that is the name of a variant, such as an optimizer's,
    narrows the choice to that variant.
    """
    tables: Sequence[type[Spec]] = [spec]
    for part in path:
        tables = _within(tables, part) if isinstance(part, str) else tables
    return tuple(dict.fromkeys(key for table in tables for key in table.model_fields))


def _within(tables: Sequence[type[Spec]], part: str) -> Sequence[type[Spec]]:
    fields = [table.model_fields[part] for table in tables if part in table.model_fields]
    if fields:
        return [table for field in fields for table in _tables_in(field.annotation)]
    return [table for table in tables if _is_variant(table, part)] or tables


def _is_variant(table: type[Spec], name: str) -> bool:
    return "name" in table.model_fields and name in get_args(table.model_fields["name"].annotation)


def _tables_in(annotation: Any) -> Iterator[type[Spec]]:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables_in(argument)
