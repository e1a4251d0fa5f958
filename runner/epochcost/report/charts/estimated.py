"""The figure of what a training costs that nobody timed: a range for each machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epochcost.analysis.estimates import EstimatedRow
from epochcost.report.charts.dots import Dot, Dots
from epochcost.report.charts.figure import (
    MACHINE,
    MARK,
    PLAN,
    Colours,
    Figure,
    ends,
    interval_columns,
    interval_values,
    symbol,
    used,
)
from epochcost.report.escape import one_line
from epochcost.report.tables import Table


def estimated_costs(
    rows: Sequence[EstimatedRow], *, identifier: str, colours: Colours
) -> Figure | None:
    """The cheapest plan of each machine, as a range; None below two machines."""
    best: dict[str, EstimatedRow] = {}
    for row in rows:
        if row.cost.currency == rows[0].cost.currency:
            best.setdefault(one_line(row.hardware.name), row)
    if len(best) < 2:
        return None
    dots = tuple(Dot(name, name, row.mark, ends(row.cost)) for name, row in best.items())
    currency = rows[0].cost.currency
    return Figure(
        id=identifier,
        title="Cost of one full training, estimated from FLOPs",
        description=(
            "Each machine at its cheapest current plan. Bars reach from the highest to the lowest "
            "utilisation, marks are at the middle; nothing of it was measured."
        ),
        chart=Dots(
            "cost of one full training",
            symbol(currency),
            dots,
            used(colours, (dot.machine for dot in dots)),
        ),
        table=_table(best, currency),
    )


def _table(best: Mapping[str, EstimatedRow], currency: str) -> Table:
    times = interval_columns("time", "s", "seconds", "Time")
    costs = interval_columns("cost", currency, "money", "Cost")
    rows = (
        (
            name,
            row.price.id,
            row.mark,
            *interval_values(ends(row.time)),
            *interval_values(ends(row.cost)),
        )
        for name, row in best.items()
    )
    return Table((MACHINE, PLAN, MARK, *times, *costs), tuple(rows))
