"""The inputs of a published table: the times and prices from which its figures are recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from epochcost.report.tables import Column, Table, Value
from epochcost.report.wording import hour_words
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.formula import Bill
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.published import Published, Timing
from epochcost.units import plain

_COLUMNS: tuple[tuple[Column, Callable[[Timing], Value]], ...] = (
    (Column("batch_size", "Batch size", "number"), lambda row: row.batch_size),
    (Column("steps_per_epoch", "Steps per epoch", "number"), lambda row: row.steps_per_epoch),
    (Column("steps", "Steps", "number"), lambda row: row.steps),
    (Column("epochs", "Epochs", "number"), lambda row: row.epochs),
    (Column("power_watts", "Power, W", "number"), lambda row: row.power_watts),
    (
        Column("accuracy", "Accuracy, %"),
        lambda row: _spread(row.accuracy_percent, row.accuracy_spread),
    ),
    (Column("runs", "Runs", "number"), lambda row: row.runs),
    (Column("framework", "Framework"), lambda row: row.framework),
    (Column("notes", "Notes"), lambda row: row.notes),
)


def inputs_table(source: Published, catalogue: Catalogue) -> Table:
    """A line per row; inputs that no row has are no column."""
    used = [
        (column, of)
        for column, of in _COLUMNS
        if any(of(timing) is not None for timing in source.timings)
    ]
    columns = (Column("row", "Row"), Column("time", "Time"), *(column for column, _ in used))
    rows = tuple(
        (
            row_words(timing, catalogue.hardware[timing.hardware]),
            _time_words(timing),
            *(of(timing) for _, of in used),
            _prices(timing, catalogue) or None,
        )
        for timing in source.timings
    )
    return Table((*columns, Column("prices", "Price per hour")), rows)


def row_words(timing: Timing, hardware: Hardware) -> str:
    """A row for people: what the source calls it, on how many of which machine."""
    count = f" \N{MULTIPLICATION SIGN} {timing.count}" if timing.count > 1 else ""
    named = f"{timing.name}: " if timing.name else ""
    return f"{named}{hardware.name}{count}"


def price_paid(price: Price) -> str:
    """A plan with its exact hourly price and its date."""
    hour = "owned" if price.owned else hour_words(price)
    return f"{hour}, {price.provider} {price.plan}, {price.as_of}"


def _prices(timing: Timing, catalogue: Catalogue) -> str:
    return "; ".join(price_paid(catalogue.prices[name]) for name in dict.fromkeys(_named(timing)))


def _named(timing: Timing) -> Iterator[str]:
    if timing.price:
        yield timing.price
    for claim in timing.claims:
        if isinstance(claim.formula, Bill) and claim.formula.price:
            yield claim.formula.price


def _time_words(timing: Timing) -> str:
    if timing.seconds_per_epoch is not None:
        return f"{plain(timing.seconds_per_epoch)} s an epoch"
    if timing.seconds is not None:
        return f"{plain(timing.seconds)} s"
    return f"{_spread(timing.hours, timing.spread_hours)} h"


def _spread(value: Decimal | None, spread: Decimal | None) -> str | None:
    """The digits as the source prints them, zeros at the end too."""
    if value is None:
        return None
    return f"{value:,f} ± {spread:f}" if spread else f"{value:,f}"
