"""Dot plots of amounts by category, the cheapest first: costs of workloads, and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.estimates import EstimatedRow
from epochcost.analysis.rows import Row
from epochcost.cost import Estimate
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import (
    BatchSize,
    ChartData,
    Ends,
    FigureKind,
    MachineName,
    PlanName,
    Shown,
    WorkloadName,
)
from epochcost.report.charts.figure import (
    Chart,
    Colours,
    Figure,
    colours_of,
    ends,
    machine_name,
    priced_rows,
)
from epochcost.report.escape import one_line

_ROW_HEIGHT = 28


@dataclass(frozen=True, slots=True)
class WorkloadCost:
    """What one epoch of a workload costs at its best; its machine is its colour."""

    workload: WorkloadName
    machine: Annotated[str, Shown("Machine", place="chart")]
    price_plan: PlanName
    figure: FigureKind
    batch_size: BatchSize
    cost: Annotated[Ends, Shown("Cost", "money")]


@dataclass(frozen=True, slots=True)
class EstimatedCost:
    """What a full training would cost on a machine at its cheapest plan."""

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    time: Annotated[Ends, Shown("Time", "seconds")]
    cost: Annotated[Ends, Shown("Cost", "money")]


@dataclass(frozen=True)
class Dots(Chart[Any]):
    """A row for each ``label`` over a logarithmic axis of an ``amount``; ``title`` names that."""

    title: str
    label: str
    amount: str
    colours: Colours

    @property
    def summary(self) -> str:
        """What the chart is of."""
        return f"{self.title}, by machine."

    @property
    def height(self) -> int:
        """As many rows as there are labels."""
        return _ROW_HEIGHT * len(set(self.data.values_of(self.label)))

    def layers(self, alt: Any) -> list[Any]:
        """Bars where an amount has an interval, and the dots."""
        order = list(dict.fromkeys(self.data.values_of(self.label)))
        base = self.marks(alt).encode(
            y=alt.Y(f"{self.label}:N", sort=order, title=None, axis=alt.Axis(grid=True)),
            color=theme.colour_by(alt, self.data, "machine", self.colours, legend=None),
        )
        dots = base.mark_point(size=110, strokeWidth=2).encode(
            x=axes.log_axis(alt.X, self.data, self.amount, self.title),
            shape=theme.shape_by_kind(alt, self.data),
            tooltip=self.data.tooltips(alt),
        )
        return [*theme.error_bars(alt, base, "X", self.amount), dots]


def workloads_compared(rows: Sequence[Row], *, identifier: str, colours: Colours) -> Figure | None:
    """What one epoch of each workload costs on one machine; None below two workloads."""
    found = priced_rows(rows, "epoch")
    best: dict[str, tuple[Row, Estimate]] = {}
    for row, _, cost in sorted(found, key=lambda one: one[2].mean):
        best.setdefault(one_line(row.observed.workload.name), (row, cost))
    if len(best) < 2:
        return None
    dots = tuple(
        WorkloadCost(
            name,
            machine_name(row.observed),
            row.plan,
            row.mark,
            row.observed.batch_size,
            ends(cost),
        )
        for name, (row, cost) in best.items()
    )
    data, title = ChartData(dots, found[0][2].currency), "cost of one epoch of training"
    return Figure(
        id=identifier,
        title=f"{title.capitalize()}, by workload",
        description=(
            "Each workload at its cheapest current plan and batch size; bars are intervals."
        ),
        chart=Dots(data, title, "workload", "cost", colours_of(colours, data)),
    )


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
    dots = tuple(
        EstimatedCost(name, row.price.id, row.mark, ends(row.time), ends(row.cost))
        for name, row in best.items()
    )
    data, title = ChartData(dots, rows[0].cost.currency), "cost of one full training"
    return Figure(
        id=identifier,
        title=f"{title.capitalize()}, estimated from FLOPs",
        description=(
            "Each machine at its cheapest current plan. Bars reach from the highest to the lowest "
            "utilisation, marks are at the middle; nothing of it was measured."
        ),
        chart=Dots(data, title, "machine", "cost", colours_of(colours, data)),
    )
