"""Cost of one job by machine: against its time, and relative to the cheapest.

The shape of a mark says how the machine's time is known. Machines of the frontier have colour, and
a name if there is room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from epochcost.analysis.machines import Machine
from epochcost.analysis.odds import Odds, scenarios
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, FigureKind, MachineName, PlanName, Shown
from epochcost.report.charts.figure import Chart, Figure, ends
from epochcost.report.escape import one_line
from epochcost.report.ranking import Contender, Contest
from epochcost.report.wording import time_words
from epochcost.units import count_words

# Plot on a phone, in pixels: names that fit there fit everywhere.
_PHONE = (300.0, 330.0)
_CHARACTER, _LINE, _LONGEST = 6.2, 15.0, 190
# No possible winner lies left of and below a machine of the frontier.
_SIDES: Mapping[str, Mapping[str, Any]] = {
    "left": {"align": "right", "dx": -7, "dy": 11},
    "right": {"align": "left", "dx": 9, "dy": -6},
}
_BEST = "datum.on_frontier == 'yes'"
_PREDICTED = "indexof(datum.figure, 'predicted') == 0"


@dataclass(frozen=True, slots=True)
class Point:
    """A machine at its cheapest plan."""

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
        """The subject of the chart."""
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
            # Timed machines are filled, predicted ones are rings.
            fill=_coloured(alt.FillValue, {"test": _PREDICTED, "value": "transparent"}),
            opacity=alt.OpacityValue(1, condition={"test": "datum.may_win == 'no'", "value": 0.4}),
            shape=theme.shape_by_kind(alt, self.data),
            tooltip=self.data.tooltips(alt),
        )
        return [line, *bars, points, *self._names(base)]

    def _names(self, base: Any) -> Iterator[Any]:
        """Names next to their points, each with an outline in the colour of the paper."""
        for side, place in _SIDES.items():
            if any(row.get("side") == side for row in self.data.values):
                named = base.transform_filter(f"datum.side == '{side}'").encode(text="label:N")
                look = {**place, "fontSize": 12, "limit": _LONGEST}
                yield named.mark_text(**look, stroke="var(--ec-paper)", strokeWidth=4)
                yield named.mark_text(**look, color="var(--ec-ink)")


def _coloured(value: Any, *before: Mapping[str, str]) -> Any:
    """The frontier's colour, or the muted one, unless an earlier condition holds."""
    best = {"test": _BEST, "value": "var(--ec-series-1)"}
    return value("var(--ec-soft)", condition=[*before, best])


def cost_against_time(contest: Contest | None, *, identifier: str, job: str) -> Figure | None:
    """Cost against time for one job of one workload; None for fewer than two machines."""
    if contest is None or len(contest.machines) < 2:
        return None
    sides = {id(contender): side for contender, side in _labelled(contest)}
    best = {id(contender) for contender in contest.frontier}
    points = tuple(
        Point(
            machine=one_line(contender.name),
            price_plan=one_line(contender.plan),
            figure=contender.mark,
            software=contender.software,
            batch_size=contender.batch_size,
            time=ends(contender.time),
            cost=ends(contender.cost),
            on_frontier=id(contender) in best,
            may_win=contender in contest.competing,
            label=one_line(contender.name) if id(contender) in sides else None,
            side=sides.get(id(contender)),
        )
        for contender in contest.machines
    )
    data = ChartData(points, contest.cheapest.cost.currency)
    return Figure(
        id=identifier,
        title=finding(contest, job),
        description=_description(contest, job),
        chart=CostTime(data, job),
    )


def finding(contest: Contest, job: str) -> str:
    """The chart's finding, as a sentence without a full stop."""
    cheap, fast = contest.cheapest, contest.fastest
    sentence = f"{job[:1].upper()}{job[1:]} costs least on {one_line(cheap.name)}: {cheap.amount}"
    if cheap is fast:
        return f"{sentence}, and it is the fastest too"
    times = float(cheap.time.mean / fast.time.mean)
    digits = 2 if times >= 1.1 else 3
    return f"{sentence}; {fast.amount} buys it {times:.{digits}g} times as fast"


def _description(contest: Contest, job: str) -> str:
    """A description of the chart for readers who cannot see it."""
    cheap, fast = contest.cheapest, contest.fastest
    return (
        f"Of {count_words(len(contest.machines), 'machine')}, each at its cheapest plan for "
        f"{job}, {one_line(cheap.name)} is the cheapest ({time_words(cheap.time)}) and "
        f"{one_line(fast.name)} the fastest ({time_words(fast.time)}). Machines on the dashed "
        "line are the best trade-offs: all others are slower or dearer."
    )


def _labelled(contest: Contest) -> Iterator[tuple[Contender, str]]:
    """Contenders whose names do not overlap, answers first, each with the side of its name."""
    width, height = _PHONE
    placed: list[tuple[float, float, float]] = []
    for contender in (contest.cheapest, contest.fastest, contest.balanced, *contest.frontier):
        x = float(contest.time_axis.percent(contender.time.mean)) / 100 * width
        y = float(contest.cost_axis.percent(contender.cost.mean)) / 100 * height
        reach = min(_CHARACTER * len(contender.name), _LONGEST)
        side, box = ("left", (x - reach, x, y)) if reach < x else ("right", (x, x + reach, y))
        if all(_are_separate(box, label_box) for label_box in placed):
            placed.append(box)
            yield contender, side


def _are_separate(first: tuple[float, float, float], second: tuple[float, float, float]) -> bool:
    return abs(first[2] - second[2]) > _LINE or first[1] < second[0] or second[1] < first[0]


_INK = "var(--ec-ink)"
# Machines besides the choice whose names fit on one screen.
_MOST_DRAWN = 20


@dataclass(frozen=True, slots=True)
class CostRatio:
    """A machine's cost over that of the choice, each at its cheapest plan, by joint draws."""

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    times_cost: Annotated[Ends, Shown("Times the cost", "number", digits=3)]
    cheapest: Annotated[float, Shown("Cheapest, of 100 scenarios", "number", digits=2)]


@dataclass(frozen=True)
class CostRatioChart(Chart[CostRatio]):
    """A dot with its range for each machine, over a logarithmic axis with the ``choice`` at 1."""

    choice: str
    height: ClassVar = {"step": 24}

    @property
    def summary(self) -> str:
        """The subject of the chart."""
        return f"Cost relative to {self.choice}, by machine."

    def layers(self, alt: Any) -> list[Any]:
        """The line at 1, then the ranges and the dots."""
        order = list(dict.fromkeys(self.data.values_of("machine")))
        domain = axes.log_domain([*self.data.values_of("times_cost"), 1.0])
        ticks = sorted({*axes.log_ticks(domain), 1.0})
        line, x = (
            axes.log_scaled(alt.X, field, domain, "times the cost", ticks)
            for field in ("ratio", "times_cost")
        )
        base = self.marks(alt).encode(
            y=alt.Y("machine:N", sort=order, title=None, axis=alt.Axis(grid=True))
        )
        quiet = {"color": "var(--ec-series-1)", "opacity": 0.5, "strokeWidth": 3}
        return [
            *_at_one(alt, line, ""),
            *theme.error_bars(alt, base, "X", "times_cost", **quiet),
            base.mark_point(
                size=90, strokeWidth=2, color="var(--ec-series-1)", fill="var(--ec-paper)"
            ).encode(
                x=x, shape=theme.shape_by_kind(alt, self.data), tooltip=self.data.tooltips(alt)
            ),
        ]


def _at_one(alt: Any, x: Any, label: str) -> list[Any]:
    at_one = alt.Chart(alt.Data(values=[{"ratio": 1}])).encode(x=x)
    return [
        at_one.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color=_INK),
        at_one.mark_text(align="center", dy=-7, color=_INK, text=label).encode(y=alt.value(0)),
    ]


def cost_ratios(contest: Contest | None, *, identifier: str, job: str) -> Figure | None:
    """The cost of every machine over that of the cheapest; None without odds of two machines."""
    odds = contest.odds if contest else None
    if contest is None or odds is None or not odds.ratios:
        return None
    best = one_line(contest.cheapest.name)
    contenders = {
        contender.row.observed.machine: contender
        for contender in contest.competing
        if contender.row is not None
    }
    ranked = sorted(
        (_cost_ratio(contenders[machine], machine, odds) for machine in odds.shares),
        key=lambda ratio: (ratio.machine != best, ratio.times_cost[1]),
    )
    drawn, omitted = ranked[:_MOST_DRAWN], len(ranked) - _MOST_DRAWN
    more = f" {count_words(omitted, 'dearer machine')} left out." if omitted > 0 else ""
    return Figure(
        id=identifier,
        title=_ratio_finding(drawn, odds),
        description=(
            f"Cost of {job} relative to {best}, each machine at its cheapest plan: the median and "
            "the 90 % range of joint scenarios, in which errors that the machines share "
            f"cancel.{more}"
        ),
        chart=CostRatioChart(ChartData(tuple(drawn)), best),
    )


def _cost_ratio(contender: Contender, machine: Machine, odds: Odds[Machine]) -> CostRatio:
    return CostRatio(
        machine=one_line(contender.name),
        price_plan=one_line(contender.plan),
        figure=contender.mark,
        times_cost=odds.ratios.get(machine, (1.0, 1.0, 1.0)),
        cheapest=100 * odds.shares[machine],
    )


def _ratio_finding(ranked: Sequence[CostRatio], odds: Odds[Machine]) -> str:
    """The chart's finding, as a sentence without a full stop."""
    best, second = ranked[:2]
    low, middle, high = (f"{end:.{1 if end < 10 else 0}f}" for end in second.times_cost)
    exact = all(ends[0] == ends[2] for ends in odds.ratios.values())
    wins = "" if exact else f" in {scenarios(odds.wins)} scenarios"
    likely = f" (likely {low} to {high})" if low != high else ""
    return (
        f"{best.machine} costs least{wins}; {second.machine} costs {middle} times as much{likely}"
    )
