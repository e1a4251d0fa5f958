"""The figure of how the step times of one host moved."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.history import HistoryChart, HistoryPoint
from epochcost.report.escape import one_line
from epochcost.report.history import Measured, Series
from epochcost.report.tables import Column, Table

# More lines than there are colours are told apart by nobody.
_MOST_LINES = 8


def moved(series: Sequence[Series], *, identifier: str) -> Figure | None:
    """Step times over the first of each series; None where nothing was measured twice."""
    again = [one for one in series if len(one.taken) > 1]
    drawn = sorted(again, key=lambda one: -one.farthest)[:_MOST_LINES]
    if not drawn:
        return None
    points = tuple(
        HistoryPoint(one_line(one.name), _at(point), _ends(point), point in one.steps)
        for one in drawn
        for point in one.points
    )
    left = len(again) - len(drawn)
    return Figure(
        id=identifier,
        title="Step time over the first measurement",
        description=(
            "Above 1 is slower than at first; bars are 95 % intervals. A ring marks a step that is "
            "significant: its interval leaves out 1, it is at least 5 %, and both sides were "
            "measured in several rounds."
            + (f" Drawn are the {_MOST_LINES} works that moved most of {len(again)}." * bool(left))
        ),
        chart=HistoryChart(points),
        table=_table(drawn),
    )


def _at(point: Measured) -> str:
    return point.at.isoformat(timespec="seconds")


def _ends(point: Measured) -> tuple[float, float, float]:
    return point.relative.low, point.relative.mean, point.relative.high


def _table(series: Sequence[Series]) -> Table:
    columns = (
        Column("work", "Work"),
        Column("measured_at", "Measured at"),
        Column("software", "Software"),
        Column("step_s", "One step", "seconds"),
        Column("over_first_low", "Over the first, lower end", "number"),
        Column("over_first", "Over the first", "number"),
        Column("over_first_high", "Over the first, upper end", "number"),
        Column("significant", "Significant step"),
    )
    rows = (
        (
            one_line(one.name),
            _at(point),
            one_line(point.software),
            point.step.mean,
            *(Decimal(f"{end:.4g}") for end in _ends(point)),
            "yes" if point in one.steps else "no",
        )
        for one in series
        for point in one.points
    )
    return Table(columns, tuple(rows))
