"""Replays on spot machines: cost by start and policy."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.replays import Replayed
from epochcost.report.charts import theme
from epochcost.report.charts.data import ChartData, Shown
from epochcost.report.charts.figure import Chart, Figure
from epochcost.units import symbol


@dataclass(frozen=True, slots=True)
class StartCost:
    """The cost of a job that started at this time, under a policy."""

    policy: Annotated[str, Shown("Policy")]
    start: Annotated[str, Shown("Start", "time")]
    cost: Annotated[float, Shown("Cost", "money")]


@dataclass(frozen=True)
class ByStart(Chart[StartCost]):
    """A line for each policy over the time of the start."""

    summary = "Cost of the job by the time of its start, for each policy."

    def layers(self, alt: Any) -> list[Any]:
        """Lines, and points for tooltips."""
        label = f"'{symbol(self.data.currency)}' + format(datum.value, ',~r')"
        amounts = alt.Axis(labelExpr=label, tickCount=6, title="cost of the job")
        days = alt.Axis(format="%d %b", tickCount=7, title="start of the job (UTC)")
        base = self.marks(alt).encode(
            x=alt.X("start:T", scale=alt.Scale(type="utc"), axis=days),
            y=alt.Y("cost:Q", scale=alt.Scale(zero=True), axis=amounts),
            color=theme.colour_by(alt, self.data, "policy"),
        )
        return [
            base.mark_line(strokeWidth=2),
            base.mark_point(filled=True, size=20).encode(tooltip=self.data.tooltips(alt)),
        ]


def cost_by_start(played: Replayed) -> Figure:
    """The cost of the job from each start of the trace."""
    rows = tuple(
        StartCost(policy, _utc(start), cost) for policy, start, cost in played.costs_by_start()
    )
    return Figure(
        id=f"spot-starts-{played.spec.id}",
        title="Cost by start",
        description=(
            "The same job, started at regular times, if it ends within the trace. A policy with "
            "the same costs as an earlier one has no line."
        ),
        chart=ByStart(ChartData(rows, played.trace.currency)),
    )


def _utc(posix_seconds: float) -> str:
    return dt.datetime.fromtimestamp(posix_seconds, dt.UTC).isoformat(timespec="seconds")
