"""The figure of cost against time."""

from __future__ import annotations

from collections.abc import Sequence

from epochcost.report.answers import on_frontier
from epochcost.report.charts.cost_time import CostTime, Point
from epochcost.report.charts.figure import Figure
from epochcost.report.figures.parts import (
    BATCH,
    MACHINE,
    MARK,
    PLAN,
    Colours,
    ends,
    interval_columns,
    interval_values,
    machine_name,
    priced,
    symbol,
    used,
)
from epochcost.report.rows import Goal, Row
from epochcost.report.tables import Column, Table


def cost_against_time(
    rows: Sequence[Row], goal: Goal, *, identifier: str, job: str, colours: Colours
) -> Figure | None:
    """Cost against time for one job of one workload; None where nothing has a price."""
    found = priced(rows, goal)
    if not found:
        return None
    frontier = on_frontier(rows, goal)
    points = tuple(
        Point(
            machine=machine_name(row.observed),
            plan=row.plan,
            mark=row.mark,
            software=row.observed.software,
            batch_size=row.observed.batch_size,
            seconds=ends(time),
            cost=ends(cost),
            on_frontier=row in frontier,
        )
        for row, time, cost in found
    )
    currency = found[0][2].currency
    chart = CostTime(job, symbol(currency), points, used(colours, points))
    return Figure(
        id=identifier,
        title=f"Cost against time of one {job}",
        description=_words(points, job),
        chart=chart,
        table=_table(points, currency),
    )


def _words(points: Sequence[Point], job: str) -> str:
    """What the chart shows, for who cannot see it."""
    if len(points) == 1:
        return f"Only {points[0].machine} has a figure for one {job} so far."
    cheapest = min(points, key=lambda point: point.cost[1])
    fastest = min(points, key=lambda point: point.seconds[1])
    of = f"Of {len(points)} combinations of machine, plan, batch size and software"
    if cheapest is fastest:
        return f"{of}, that of {cheapest.machine} is both the cheapest and the fastest."
    return (
        f"{of}, that of {cheapest.machine} is the cheapest and that of {fastest.machine} the "
        "fastest. The dashed line is the Pareto frontier: no combination beats its corners in "
        "both time and cost."
    )


def _table(points: Sequence[Point], currency: str) -> Table:
    columns = (
        MACHINE,
        PLAN,
        MARK,
        Column("software", "Software"),
        BATCH,
        *interval_columns("time", "s", "seconds", "Time"),
        *interval_columns("cost", currency, "money", "Cost"),
        Column("on_frontier", "On frontier"),
    )
    rows = tuple(
        (
            point.machine,
            point.plan,
            point.mark,
            point.software,
            point.batch_size,
            *interval_values(point.seconds),
            *interval_values(point.cost),
            "yes" if point.on_frontier else "no",
        )
        for point in points
    )
    return Table(columns, rows)
