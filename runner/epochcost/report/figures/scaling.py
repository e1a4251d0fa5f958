"""The figure of vCPU scaling: how many times as fast a work is on more CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.scaling import ScalingChart, ScalingPoint
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table
from epochcost.report.variants import Scaled, Scaling


def speedup_by_vcpus(scalings: Sequence[Scaling], *, identifier: str) -> Figure | None:
    """The speed-up of each work over the fewest vCPUs; None where nothing was scaled."""
    machines = {found.machine for found in scalings}
    series = [(_name(found, len(machines) > 1), found) for found in scalings]
    if not series:
        return None
    points = tuple(
        ScalingPoint(name, point.vcpus, (point.speedup.low, point.speedup.mean, point.speedup.high))
        for name, found in series
        for point in found.points
    )
    rows = ((name, point) for name, found in series for point in found.points)
    return Figure(
        id=identifier,
        title="vCPUs against speed",
        description=(
            "How many times as fast a step is as on the fewest vCPUs; bars are 95 % intervals. "
            "Where a line stays below the dashed one, the larger instance costs more for each job "
            "at a price in proportion to vCPUs."
        ),
        chart=ScalingChart(points),
        table=_table(rows),
    )


def _name(found: Scaling, with_machine: bool) -> str:
    work = f"{found.mode}, batch {found.batch_size}"
    return f"{one_line(found.machine.name)}: {work}" if with_machine else work


def _table(rows: Iterable[tuple[str, Scaled]]) -> Table:
    columns = (
        Column("work", "Work"),
        Column("vcpus", "vCPUs", "number"),
        Column("speedup_low", "Times as fast, lower end", "number"),
        Column("speedup", "Times as fast", "number"),
        Column("speedup_high", "Times as fast, upper end", "number"),
        Column("efficiency", "Efficiency", "number"),
        Column("relative_cost", "Cost over that of the fewest", "number"),
    )
    return Table(columns, tuple(_row(name, point) for name, point in rows))


def _row(name: str, point: Scaled) -> tuple[str | int | Decimal, ...]:
    faster, cost = point.speedup, point.relative_cost
    figures = (faster.low, faster.mean, faster.high, point.efficiency, cost.mean)
    return (name, point.vcpus, *(Decimal(f"{figure:.4g}") for figure in figures))
