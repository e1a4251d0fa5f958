"""A figure: a chart with its title, description and the table of its data.

And what the figures share: names, colours, intervals and the columns that show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from epochcost.analysis.observations import Goal, Observation
from epochcost.analysis.rows import Row
from epochcost.cost import Estimate, Time
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Form, Table, Value
from epochcost.specs.hardware import Hardware


class Chart(Protocol):
    """The input of a drawing: a frozen dataclass whose ``repr`` says everything that is drawn."""

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec, validated by Altair."""
        ...


@dataclass(frozen=True)
class Figure:
    """A chart in its frame; ``id`` is unique on the site and names the data files."""

    id: str
    title: str
    description: str
    chart: Chart
    table: Table


Colours = tuple[tuple[str, int], ...]
Ends = tuple[float, float, float]
MACHINE = Column("machine", "Machine")
PLAN = Column("price_plan", "Price plan")
MARK = Column("figure", "Figure")
BATCH = Column("batch_size", "Batch size", "number")
_SYMBOLS: Mapping[str, str] = {"USD": "$", "EUR": "€", "GBP": "£"}


def machine_colours(hardware: Iterable[Hardware], observations: Iterable[Observation]) -> Colours:
    """Each machine's number of colour, timed or not: the same on every page.

    Timed machines come first: there are fewer colours than machines, and only they share charts.
    """
    known = {one_line(one.name) for one in hardware if not one.detected}
    timed = {machine_name(one) for one in observations}
    names = sorted(known | timed, key=lambda name: (name not in timed, name))
    return tuple((name, at) for at, name in enumerate(names))


def used(colours: Colours, series: Iterable[str]) -> Colours:
    """The colours of the series that are drawn."""
    drawn = set(series)
    return tuple(pair for pair in colours if pair[0] in drawn)


def machine_name(observed: Observation) -> str:
    """The machine in one line of printable text."""
    return one_line(observed.machine.name)


def symbol(currency: str) -> str:
    """What stands before an amount."""
    return _SYMBOLS.get(currency, f"{currency} ")


def ends(value: Time | Estimate) -> Ends:
    """Low, mean and high as numbers to draw."""
    return float(value.low), float(value.mean), float(value.high)


def priced(rows: Iterable[Row], goal: Goal) -> list[tuple[Row, Time, Estimate]]:
    """Rows that may answer, with a time and a cost, in the currency of the first."""
    found = [
        (row, time, cost)
        for row in rows
        if row.answers and (time := row.time(goal)) and (cost := row.estimate(goal))
    ]
    return [one for one in found if one[2].currency == found[0][2].currency]


def interval_columns(name: str, unit: str, form: Form, title: str) -> tuple[Column, ...]:
    """The lower end, the mean and the upper end of a quantity."""
    return (
        Column(f"{name}_low_{unit}", f"{title}, lower end", form, currency=unit),
        Column(f"{name}_{unit}", title, form, currency=unit),
        Column(f"{name}_high_{unit}", f"{title}, upper end", form, currency=unit),
    )


def interval_values(ends: Ends) -> tuple[Value, ...]:
    """The values of `interval_columns`; equal ends are no interval."""
    low, mean, high = (Decimal(repr(value)) for value in ends)
    return (None, mean, None) if low == high else (low, mean, high)
