"""Spot machines of the past: cost by start and policy, and the times of zones with machines."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np

from epochcost.analysis.replays import Replayed
from epochcost.report.charts import theme
from epochcost.report.charts.data import ChartData, Shown
from epochcost.report.charts.figure import Chart, Figure
from epochcost.report.escape import one_line
from epochcost.units import symbol

# What fits a line of a page; longer traces show their beginning.
_DRAWN_SECONDS = 14 * 86_400.0
_TAKEN = "taken back"


@dataclass(frozen=True, slots=True)
class StartCost:
    """A job that began then, under a policy."""

    policy: Annotated[str, Shown("Policy")]
    start: Annotated[str, Shown("Start", "time")]
    cost: Annotated[float, Shown("Cost", "money")]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a zone had machines, and how it ended."""

    zone: Annotated[str, Shown("Zone")]
    begin: Annotated[str, Shown("From", "time")]
    end: Annotated[str, Shown("To", "time")]
    ended: Annotated[str, Shown("Ended")]


@dataclass(frozen=True)
class ByStart(Chart[StartCost]):
    """A line for each policy over the time of the start."""

    summary = "Cost of the job by the time of its start, for each policy."
    picks = "policy"

    def layers(self, alt: Any) -> list[Any]:
        """Lines, and points for tooltips."""
        label = f"'{symbol(self.data.currency)}' + format(datum.value, ',~r')"
        amounts = alt.Axis(labelExpr=label, tickCount=6)
        base = self.marks(alt).encode(
            x=_days(alt, "start", "start of the job (UTC)"),
            y=alt.Y("cost:Q", scale=alt.Scale(zero=True), axis=amounts, title="cost of the job"),
            color=theme.colour_by(alt, self.data, "policy"),
        )
        return [
            base.mark_line(strokeWidth=2),
            base.mark_point(filled=True, size=20).encode(tooltip=self.data.tooltips(alt)),
        ]


@dataclass(frozen=True)
class Timeline(Chart[Stretch]):
    """A bar for each stretch of a zone with machines, and a mark where they were taken back."""

    summary = "When each zone had machines, and when it took them back."
    height: ClassVar = {"step": 40}

    def layers(self, alt: Any) -> list[Any]:
        """Bars, and marks at their ends."""
        base = self.marks(alt).encode(
            y=alt.Y("zone:N", title=None), color=alt.value("var(--ec-series-1)")
        )
        bars = base.mark_rule(strokeWidth=14, opacity=0.55).encode(
            x=_days(alt, "begin", "time (UTC)"), x2=alt.X2("end"), tooltip=self.data.tooltips(alt)
        )
        taken = base.transform_filter(f"datum.ended == '{_TAKEN}'").mark_point(
            shape="triangle-left", filled=True, size=70, color="var(--ec-ink)"
        )
        return [bars, taken.encode(x=alt.X("end:T"), color=alt.value("var(--ec-ink)"))]


def _days(alt: Any, field: str, title: str) -> Any:
    axis = alt.Axis(format="%d %b", tickCount=7)
    return alt.X(f"{field}:T", scale=alt.Scale(type="utc"), axis=axis, title=title)


def cost_by_start(played: Replayed) -> Figure:
    """The cost of the job from each start of the trace."""
    rows = tuple(
        StartCost(policy, _utc(start), cost) for policy, start, cost in played.costs_by_start()
    )
    return Figure(
        id=f"spot-starts-{played.spec.id}",
        title="Cost by start",
        description=(
            "The same job begun at even distances, as far as it ends within the trace. A policy "
            "whose costs are all those of one above has no line."
        ),
        chart=ByStart(ChartData(rows, played.trace.currency)),
    )


def machines_over_time(played: Replayed) -> Figure | None:
    """The times in which zones had machines, over two weeks at most; None if always."""
    rows = tuple(row for number in range(len(played.market.zones)) for row in _of(played, number))
    if not any(row.ended == _TAKEN for row in rows):
        return None
    return Figure(
        id=f"spot-time-{played.spec.id}",
        title="Interruptions over time",
        description="A bar is a time with machines; a mark is when they were taken back.",
        chart=Timeline(ChartData(rows, played.trace.currency)),
    )


def _of(played: Replayed, number: int) -> list[Stretch]:
    """The stretches of a zone."""
    market, begin = played.market, played.trace.start
    last, had = min(market.end, _DRAWN_SECONDS), market.had[number]
    changes = [0, *(np.flatnonzero(had[1:] != had[:-1]) + 1).tolist(), len(had)]
    times = np.append(market.times, market.end)
    return [
        Stretch(
            one_line(market.zones[number]),
            _utc(begin + times[first]),
            _utc(begin + min(times[end], last)),
            _TAKEN if times[end] < last else "as far as shown",
        )
        for first, end in pairwise(changes)
        if had[first] and times[first] < last
    ]


def _utc(posix_seconds: float) -> str:
    return dt.datetime.fromtimestamp(posix_seconds, dt.UTC).isoformat(timespec="seconds")
