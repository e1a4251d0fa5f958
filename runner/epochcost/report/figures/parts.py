"""What the figures share: names, colours, intervals and the columns that show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from epochcost.cost import Estimate, Time
from epochcost.report.charts.batch_size import BatchPoint
from epochcost.report.charts.cost_time import Point
from epochcost.report.charts.dots import Dot
from epochcost.report.escape import one_line
from epochcost.report.observations import Observation
from epochcost.report.rows import Goal, Row
from epochcost.report.tables import Column, Form, Value
from epochcost.specs.hardware import Hardware

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


def used(colours: Colours, parts: Iterable[Point | Dot | BatchPoint]) -> Colours:
    """The colours of the series that are drawn."""
    present = {part.series if isinstance(part, BatchPoint) else part.machine for part in parts}
    return tuple(pair for pair in colours if pair[0] in present)


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
