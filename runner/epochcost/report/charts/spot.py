"""Chart replays on spot machines: the cost of a job by the time of its start, for each policy."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean
from typing import Annotated, Any

from epochcost.analysis.replays import Replayed
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Shown
from epochcost.report.charts.figure import LEAST_POINTS, Chart, Figure, day_range
from epochcost.units import money


@dataclass(frozen=True, slots=True)
class StartCost:
    """The cost of a job that starts at a time and follows a policy."""

    policy: Annotated[str, Shown("Policy")]
    start: Annotated[str, Shown("Start", "time")]
    cost: Annotated[float, Shown("Cost", "money")]


@dataclass(frozen=True)
class ByStart(Chart[StartCost]):
    """Chart a line for each policy over the time at which the job starts."""

    summary = "Cost of the job by the time of its start, for each policy."

    def layers(self, alt: Any) -> list[Any]:
        """Lines, and invisible points for tooltips."""
        days = alt.Axis(format="%d %b", tickCount=7, title="start of the job (UTC)")
        base = self.marks(alt).encode(
            x=alt.X("start:T", scale=alt.Scale(type="utc"), axis=days),
            y=axes.money_axis(alt, "cost", "cost of the job", self.data.currency),
            color=theme.colour_by(alt, self.data, "policy", legend=theme.LINES),
        )
        return [
            base.mark_line(strokeWidth=2),
            self.data.with_tooltips(alt, base.mark_point(size=60, opacity=0)),
        ]


def cost_by_start(played: Replayed) -> Figure | None:
    """Chart the job's cost by its start in the trace; None if there are fewer than three costs."""
    rows = tuple(
        StartCost(policy, _utc(start), cost) for policy, start, cost in played.costs_by_start()
    )
    means = {
        policy: fmean(row.cost for row in rows if row.policy == policy)
        for policy in dict.fromkeys(row.policy for row in rows)
    }
    if len({(row.start, row.cost) for row in rows}) < LEAST_POINTS:
        return None
    best, currency = min(means, key=lambda policy: means[policy]), played.trace.currency
    mean = money(Decimal(means[best]), currency)
    first, last = (
        dt.datetime.fromtimestamp(end, dt.UTC).date()
        for end in (played.trace.start, played.trace.end)
    )
    return Figure(
        id=f"spot-starts-{played.spec.id}",
        title=f"Cheapest policy: {best}; {mean} on average",
        description=(
            "The same job, started at regular times, if it ends within the trace. A policy with "
            "the same costs as an earlier one has no line."
        ),
        chart=ByStart(ChartData(rows, currency)),
        source=f"Computed from the trace's prices of {day_range([first, last])}",
    )


def _utc(posix_seconds: float) -> str:
    return dt.datetime.fromtimestamp(posix_seconds, dt.UTC).isoformat(timespec="seconds")
