"""The rows that predictions learn from: of the project's tables, those that can be right.

Reading tables is left to ``tables``, doubting rows to ``screening``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from epochcost.predict.design import Devices, Placed, content_of
from epochcost.predict.rates import without_repeats
from epochcost.predict.screening import doubted_rows
from epochcost.predict.tables import placed, placed_tables
from epochcost.results.kept import Keep
from epochcost.specs.catalogue import Catalogue

_FRAMEWORKS = ("PyTorch", "TensorFlow", "MXNet")
_KEPT = Keep("screened", TypeAdapter(tuple[str, tuple[int, ...]]), ("predict", "specs"))


def learnt_rates(
    catalogue: Catalogue, devices: Devices, cache: Path | None = None
) -> tuple[Placed, ...]:
    """What frameworks reach as they come: one rate for each work and device, whatever version.

    The software of a rate is its framework.

    Programs that vendors tuned for a device say little of what a runtime reaches untuned. Which
    rows were doubted is kept in ``cache``. Raises InputError for a table that cannot be read.
    """
    tables = [one for one in catalogue.observations.values() if not one.tuned]
    rows = _undoubted(placed_tables(catalogue, tables, devices), devices, cache)
    profiles = {
        (one.rate.model, one.rate.size): one.profile for one in rows if one.profile is not None
    }
    rates = without_repeats(
        replace(one.rate, software=framework_of(one.rate.software)) for one in rows
    )
    return tuple(placed(rates, devices, profiles)[0])


def framework_of(software: str) -> str:
    """The framework in a source's words for its software; those words where they name none."""
    said = software.casefold()
    if said.startswith("pt"):
        return "PyTorch"
    return next((name for name in _FRAMEWORKS if name.casefold() in said), software)


def _undoubted(rows: Sequence[Placed], devices: Devices, cache: Path | None) -> tuple[Placed, ...]:
    """The rows that can be right, judged table by table."""
    tables: dict[str, list[Placed]] = defaultdict(list)
    for one in rows:
        tables[one.rate.path].append(one)
    return tuple(
        one
        for table in tables.values()
        for doubts in [_doubted(table, devices, cache)]
        for at, one in enumerate(table)
        if at not in doubts
    )


def _doubted(table: Sequence[Placed], devices: Devices, cache: Path | None) -> frozenset[int]:
    """The places of the rows that cannot be right."""
    content = content_of(table, devices) if cache else None
    places = _KEPT.value(cache, content, lambda: tuple(doubted_rows(table, devices)))
    return frozenset(places)
