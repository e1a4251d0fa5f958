"""Cost against time of one job: every machine that can do it, and those that no other beats.

A machine's mark says how its time is known; those of the frontier stand out and are named beside
their marks, as far as names have room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import (
    ChartData,
    Ends,
    FigureKind,
    MachineName,
    PlanName,
    Shown,
)
from epochcost.report.charts.figure import Chart, Figure, ends
from epochcost.report.escape import one_line
from epochcost.report.ranking import Contender, Contest
from epochcost.report.wording import time_words
from epochcost.units import count_words

# Of a phone's plot, in pixels: where names have room there, they have it everywhere.
_PHONE = (300.0, 330.0)
_CHARACTER, _LINE, _LONGEST = 6.2, 15.0, 190
# Left of and below a machine of the frontier none is that may win.
_SIDES: Mapping[str, Mapping[str, Any]] = {
    "left": {"align": "right", "dx": -7, "dy": 11},
    "right": {"align": "left", "dx": 9, "dy": -6},
}
_BEST = "datum.on_frontier == 'yes'"
_PREDICTED = "indexof(datum.figure, 'predicted') == 0"


@dataclass(frozen=True, slots=True)
class Point:
    """One machine at its cheapest plan."""

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    software: Annotated[str, Shown("Software")]
    batch_size: Annotated[int | None, Shown("Batch size", "number")]
    time: Annotated[Ends, Shown("Time", "seconds")]
    cost: Annotated[Ends, Shown("Cost", "money")]
    on_frontier: Annotated[bool, Shown("On frontier")]
    may_win: Annotated[bool, Shown("May win", place="chart")]
    label: Annotated[str | None, Shown("Label", place="chart")]
    side: Annotated[str | None, Shown("Side", place="chart")]


@dataclass(frozen=True)
class CostTime(Chart[Point]):
    """Points by kind of figure (shape); ``job`` is a phrase such as "full training, 20 epochs"."""

    job: str
    height = 340

    @property
    def summary(self) -> str:
        """What the chart is of."""
        return f"Cost vs. time of {self.job}, by machine."

    def layers(self, alt: Any) -> list[Any]:
        """The frontier with its intervals, all points, and the names."""
        x = axes.log_axis(alt.X, self.data, "time", f"time of {self.job}")
        y = axes.log_axis(alt.Y, self.data, "cost", f"cost of {self.job}")
        plain = self.marks(alt)
        best, base = plain.transform_filter(_BEST), plain.encode(x=x, y=y)
        line = best.encode(x=x, y=y).mark_line(
            interpolate="step-after", strokeDash=[5, 4], strokeWidth=1.5, color="var(--ec-soft)"
        )
        quiet = {"color": "var(--ec-series-1)", "opacity": 0.35, "strokeWidth": 2}
        bars = [
            *theme.error_bars(alt, best.encode(y=y), "X", "time", **quiet),
            *theme.error_bars(alt, best.encode(x=x), "Y", "cost", **quiet),
        ]
        points = base.mark_point(size=90, strokeWidth=2, filled=False).encode(
            color=_coloured(alt.ColorValue),
            # What was timed is filled, what is predicted a ring.
            fill=_coloured(alt.FillValue, {"test": _PREDICTED, "value": "transparent"}),
            opacity=alt.OpacityValue(1, condition={"test": "datum.may_win == 'no'", "value": 0.4}),
            shape=theme.shape_by_kind(alt, self.data),
            tooltip=self.data.tooltips(alt),
        )
        return [line, *bars, points, *self._names(base)]

    def _names(self, base: Any) -> Iterator[Any]:
        """The names beside their points, each on paper of its own."""
        for side, place in _SIDES.items():
            if any(row.get("side") == side for row in self.data.values):
                named = base.transform_filter(f"datum.side == '{side}'").encode(text="label:N")
                look = {**place, "fontSize": 12, "limit": _LONGEST}
                yield named.mark_text(**look, stroke="var(--ec-paper)", strokeWidth=4)
                yield named.mark_text(**look, color="var(--ec-ink)")


def _coloured(value: Any, *before: Mapping[str, str]) -> Any:
    """The colour of the frontier, or the quiet one, unless a condition before that holds."""
    best = {"test": _BEST, "value": "var(--ec-series-1)"}
    return value("var(--ec-soft)", condition=[*before, best])


def cost_against_time(contest: Contest | None, *, identifier: str, job: str) -> Figure | None:
    """Cost against time for one job of one workload; None below two machines."""
    if contest is None or len(contest.machines) < 2:
        return None
    sides = {id(one): side for one, side in _labelled(contest)}
    best = {id(one) for one in contest.frontier}
    points = tuple(
        Point(
            machine=one_line(one.name),
            price_plan=one_line(one.plan),
            figure=one.mark,
            software=one.software,
            batch_size=one.batch_size,
            time=ends(one.time),
            cost=ends(one.cost),
            on_frontier=id(one) in best,
            may_win=one in contest.competing,
            label=one_line(one.name) if id(one) in sides else None,
            side=sides.get(id(one)),
        )
        for one in contest.machines
    )
    data = ChartData(points, contest.cheapest.cost.currency)
    return Figure(
        id=identifier,
        title=finding(contest, job),
        description=_words(contest, job),
        chart=CostTime(data, job),
    )


def finding(contest: Contest, job: str) -> str:
    """What the chart shows, in a sentence without its stop."""
    cheap, fast = contest.cheapest, contest.fastest
    said = f"{job[:1].upper()}{job[1:]} costs least on {one_line(cheap.name)}: {cheap.amount}"
    if cheap is fast:
        return f"{said}, where it is fastest too"
    times = float(cheap.time.mean / fast.time.mean)
    digits = 2 if times >= 1.1 else 3
    return f"{said}; {fast.amount} buys it {times:.{digits}g} times as fast"


def _words(contest: Contest, job: str) -> str:
    """What the chart shows, for who cannot see it."""
    cheap, fast = contest.cheapest, contest.fastest
    return (
        f"Of {count_words(len(contest.machines), 'machine')}, each at its cheapest plan for "
        f"{job}, {one_line(cheap.name)} is the cheapest ({time_words(cheap.time)}) and "
        f"{one_line(fast.name)} the fastest ({time_words(fast.time)}). Machines on the dashed "
        "line are the best trade-offs: all others are slower or dearer."
    )


def _labelled(contest: Contest) -> Iterator[tuple[Contender, str]]:
    """The answers, then others of the frontier, whose names meet no other name; each's side."""
    width, height = _PHONE
    placed: list[tuple[float, float, float]] = []
    for one in (contest.cheapest, contest.fastest, contest.balanced, *contest.frontier):
        x = float(contest.time_axis.percent(one.time.mean)) / 100 * width
        y = float(contest.cost_axis.percent(one.cost.mean)) / 100 * height
        reach = min(_CHARACTER * len(one.name), _LONGEST)
        side, box = ("left", (x - reach, x, y)) if reach < x else ("right", (x, x + reach, y))
        if all(_apart(box, other) for other in placed):
            placed.append(box)
            yield one, side


def _apart(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return abs(one[2] - other[2]) > _LINE or one[1] < other[0] or other[1] < one[0]
