"""Cost against time of one job, by machine and plan, with the Pareto frontier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import Row, on_frontier
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import (
    BatchSize,
    ChartData,
    Ends,
    FigureKind,
    MachineName,
    PlanName,
    Shown,
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


@dataclass(frozen=True, slots=True)
class Point:
    """One machine and plan."""

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    software: Annotated[str, Shown("Software")]
    batch_size: BatchSize
    time: Annotated[Ends, Shown("Time", "seconds")]
    cost: Annotated[Ends, Shown("Cost", "money")]
    on_frontier: Annotated[bool, Shown("On frontier")]


@dataclass(frozen=True)
class CostTime(Chart[Point]):
    """Points by machine (colour) and kind (shape), error bars, and the frontier as a line.

    ``job`` is a phrase such as "full training, 20 epochs".
    """

    job: str
    colours: Colours
    height = 360

    @property
    def summary(self) -> str:
        """What the chart is of."""
        return f"Cost against time of one {self.job}, by machine and price plan."

    def layers(self, alt: Any) -> list[Any]:
        """The frontier, the bars of both quantities, and the points."""
        x = axes.log_axis(alt.X, self.data, "time", f"time of one {self.job}")
        y = axes.log_axis(alt.Y, self.data, "cost", f"cost of one {self.job}")
        picked = alt.selection_point(name="picked", fields=["machine"], bind="legend")
        base = self.marks(alt)
        marks = base.encode(
            color=theme.colour_by(alt, self.data, "machine", self.colours),
            opacity=theme.fade_unpicked(alt, picked),
        )
        return [
            _frontier(base).encode(x=x, y=y),
            # Of layers with one legend the first decides whether it hears clicks.
            *theme.error_bars(alt, marks.encode(y=y).add_params(picked), "X", "time"),
            *theme.error_bars(alt, marks.encode(x=x), "Y", "cost"),
            marks.mark_point(size=110, strokeWidth=2, filled=False).encode(
                x=x,
                y=y,
                shape=theme.shape_by_kind(alt, self.data),
                tooltip=self.data.tooltips(alt),
            ),
        ]


def _frontier(base: Any) -> Any:
    return base.mark_line(
        interpolate="step-after", strokeDash=[5, 4], strokeWidth=1.5, color="var(--ec-soft)"
    ).transform_filter("datum.on_frontier == 'yes'")


def cost_against_time(
    rows: Sequence[Row], goal: Goal, *, identifier: str, job: str, colours: Colours
) -> Figure | None:
    """Cost against time for one job of one workload; None where nothing has a price."""
    found = priced_rows(rows, goal)
    if not found:
        return None
    frontier = on_frontier(rows, goal)
    points = tuple(
        Point(
            machine=machine_name(row.observed),
            price_plan=row.plan,
            figure=row.mark,
            software=row.observed.software,
            batch_size=row.observed.batch_size,
            time=ends(time),
            cost=ends(cost),
            on_frontier=row in frontier,
        )
        for row, time, cost in found
    )
    data = ChartData(points, found[0][2].currency)
    return Figure(
        id=identifier,
        title=f"Cost against time of one {job}",
        description=_words(points, job),
        chart=CostTime(data, job, colours_of(colours, data)),
    )


def _words(points: Sequence[Point], job: str) -> str:
    """What the chart shows, for who cannot see it."""
    if len(points) == 1:
        return f"Only {points[0].machine} has a figure for one {job} so far."
    cheapest = min(points, key=lambda point: point.cost[1])
    fastest = min(points, key=lambda point: point.time[1])
    of = f"Of {len(points)} combinations of machine, plan, batch size and software"
    if cheapest is fastest:
        return f"{of}, that of {cheapest.machine} is both the cheapest and the fastest."
    return (
        f"{of}, that of {cheapest.machine} is the cheapest and that of {fastest.machine} the "
        "fastest. The dashed line is the Pareto frontier: no combination beats its corners in "
        "both time and cost."
    )
