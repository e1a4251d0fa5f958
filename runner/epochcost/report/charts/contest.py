"""Chart a job's cost on each machine: against its time, and relative to the cheapest machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from epochcost.analysis.machines import Machine
from epochcost.analysis.odds import Odds, scenarios, times_over
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, FigureKind, MachineName, PlanName, Shown
from epochcost.report.charts.figure import LEAST_POINTS, Figure, day_range, ends
from epochcost.report.escape import one_line
from epochcost.report.ranking import Contender, Contest
from epochcost.report.wording import render_time
from epochcost.units import render_count, rounded

# Size of the plot on a phone, in pixels: names that fit there fit everywhere.
_PHONE = (245.0, 330.0)
_CHARACTER, _LINE, _LONGEST, _MARK = 7.0, 15.0, 190, 4.0
# No possible winner lies left of and below a machine of the frontier.
_SIDES: Mapping[str, Mapping[str, Any]] = {
    "left": {"align": "right", "dx": -7, "dy": 11},
    "right": {"align": "left", "dx": 9, "dy": -6},
    "below": {"align": "left", "dx": 7, "dy": 17},
}
_BEST = "datum.on_frontier == 'yes'"


@dataclass(frozen=True, slots=True)
class Point:
    """A machine at its cheapest plan; ``side`` is where its name is drawn, None without a name."""

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    software: Annotated[str, Shown("Software")]
    batch_size: Annotated[int | None, Shown("Batch size", "number")]
    time: Annotated[Ends, Shown("Time", "seconds")]
    cost: Annotated[Ends, Shown("Cost", "money")]
    on_frontier: Annotated[bool, Shown("On frontier")]
    label: Annotated[str, Shown("Short name", place="chart")]
    side: Annotated[str | None, Shown("Side of the name", place="chart")] = None


class CostTime(Figure):
    """Chart each machine's cost against its time."""

    def layers(self, alt: Any) -> list[Any]:
        """The layers of the chart: a line, intervals, marks and names.

        The line and the intervals are for machines that no other beats in both time and cost.
        """
        x = axes.log_axis(alt.X, self.data, "time", "time")
        y = axes.log_axis(alt.Y, self.data, "cost", "cost")
        plain = self.marks(alt)
        best, base = plain.transform_filter(_BEST), plain.encode(x=x, y=y)
        line = best.encode(x=x, y=y).mark_line(
            interpolate="step-after", strokeDash=[5, 4], strokeWidth=1.5, color="var(--ec-soft)"
        )
        quiet = {"color": "var(--ec-series-1)", "opacity": 0.35, "strokeWidth": 2}
        bars = [
            theme.error_bars(alt, best.encode(y=y), "X", "time", **quiet),
            theme.error_bars(alt, best.encode(x=x), "Y", "cost", **quiet),
        ]
        colour = {"test": _BEST, "value": "var(--ec-series-1)"}
        points = base.mark_point(size=80, filled=True, opacity=1).encode(
            color=alt.ColorValue("var(--ec-soft)", condition=colour),
            shape=theme.shape_by_kind(alt, self.data),
        )
        return [line, *bars, self.data.with_tooltips(alt, points), *self._outlined_names(base)]

    def _outlined_names(self, base: Any) -> Iterator[Any]:
        for side, place in _SIDES.items():
            if any(row.get("side") == side for row in self.data.values):
                named = base.transform_filter(f"datum.side == '{side}'").encode(text="label:N")
                look = {**place, "fontSize": 12, "limit": _LONGEST}
                yield named.mark_text(**look, stroke="var(--ec-paper)", strokeWidth=4)
                yield named.mark_text(**look, color="var(--ec-ink)")


def cost_against_time(contest: Contest, *, identifier: str, job: str) -> CostTime | None:
    """Chart cost against time of the competing machines; None for fewer than three points."""
    best = {id(contender) for contender in contest.frontier}
    points = {
        id(contender): Point(
            machine=one_line(contender.name),
            price_plan=one_line(contender.plan),
            figure=contender.mark,
            software=contender.software,
            batch_size=contender.batch_size,
            time=ends(contender.time),
            cost=ends(contender.cost),
            on_frontier=id(contender) in best,
            label=one_line(contender.name).partition(" (")[0],
        )
        for contender in contest.competing
    }
    if len({(point.time[1], point.cost[1]) for point in points.values()}) < LEAST_POINTS:
        return None
    answers = (contest.cheapest, contest.fastest, contest.balanced, *contest.frontier)
    named = (*answers, contest.measured) if contest.measured else answers
    data = ChartData((*points.values(),), contest.cheapest.cost.currency)
    sides = _sides_of_names(data, [points[id(contender)] for contender in named])
    rows = (replace(row, side=sides.get(row.machine)) for row in data.rows)
    data = ChartData((*rows,), data.currency)
    return CostTime(
        id=identifier,
        title=finding(contest, job),
        description=_description(contest, job),
        data=data,
        source=_source(contest),
    )


def _source(contest: Contest) -> str:
    kinds = sorted({contender.mark.split(",")[0] for contender in contest.competing})
    days = day_range(contender.price.as_of for contender in contest.competing)
    return f"Times {' or '.join(kinds)}; prices of {days}"


def finding(contest: Contest, job: str) -> str:
    """The main result of the chart, as a sentence without a full stop."""
    cheap = contest.cheapest
    # The fastest may cost much more for a few seconds less.
    fast = contest.fastest if contest.balanced is cheap else contest.balanced
    amounts = [
        f"{contender.amount}{_bracketed_kind(contender.mark)}" for contender in (cheap, fast)
    ]
    sentence = f"{job[:1].upper()}{job[1:]} costs least on {one_line(cheap.name)}: {amounts[0]}"
    if cheap is fast:
        return f"{sentence}, and it is the fastest too"
    times = float(cheap.time.mean / fast.time.mean)
    faster = rounded(times, 2 if times >= 1.1 else 3)
    return f"{sentence}; {one_line(fast.name)} is {faster} times as fast for {amounts[1]}"


def _bracketed_kind(mark: str) -> str:
    kind = mark.partition(",")[0]
    return "" if kind == "measured" else f" ({kind})"


def _description(contest: Contest, job: str) -> str:
    cheap, fast = contest.cheapest, contest.fastest
    left_out = _left_out(len(contest.machines) - len(contest.competing), "machine")
    between = f" ({render_time(cheap.time)}) and {one_line(fast.name)} "
    nearly = "" if fast is contest.frontier[0] else ", within 5 %"
    return (
        f"Of {render_count(len(contest.competing), 'machine')}, each at its cheapest plan for "
        f"{job}, {one_line(cheap.name)} is the cheapest{' and ' if cheap is fast else between}"
        f"the fastest{nearly} ({render_time(fast.time)}). Blue machines on the dashed line are the "
        "best trade-offs: no machine is both faster and cheaper."
        f"{left_out and f'{left_out}: the table says why.'}"
    )


def _left_out(omitted: int, noun: str) -> str:
    """A clause that says how many items, named ``noun``, the chart omits; empty if none."""
    are = "is" if omitted == 1 else "are"
    return f" {render_count(omitted, noun)} {are} left out" if omitted > 0 else ""


def _sides_of_names(data: ChartData[Point], points: Sequence[Point]) -> Mapping[str, str]:
    """By machine, the side of its mark where the name overlaps nothing; no entry without one."""
    width, height = _PHONE
    x = axes.positions(data.values_of("time"), [row.time[1] for row in data.rows], width)
    y = axes.positions(data.values_of("cost"), [row.cost[1] for row in data.rows], height)
    marks = dict(zip((row.machine for row in data.rows), zip(x, y, strict=True), strict=True))
    boxes = [(x - _MARK, x + _MARK, y - _MARK, y + _MARK) for x, y in marks.values()]
    sides: dict[str, str] = {}
    for row in points:
        for side, box in _name_boxes_by_side(row.label, *marks[row.machine]):
            free = box[0] >= 0 and box[1] <= width
            if row.machine not in sides and free and not any(_overlap(box, each) for each in boxes):
                sides[row.machine] = side
                boxes.append(box)
    return sides


# Left, right, bottom and top of a rectangle, in pixels from the plot's lower left corner.
_Box = tuple[float, float, float, float]


def _overlap(box: _Box, other: _Box) -> bool:
    beside = box[1] < other[0] or other[1] < box[0]
    return not (beside or box[3] < other[2] or other[3] < box[2])


def _name_boxes_by_side(name: str, mark_x: float, mark_y: float) -> Iterator[tuple[str, _Box]]:
    reach = min(_CHARACTER * len(name), _LONGEST)
    for side, place in _SIDES.items():
        near, level = mark_x + place["dx"], mark_y - place["dy"]
        left, right = (near - reach, near) if side == "left" else (near, near + reach)
        yield side, (left, right, level - _LINE / 3, level + _LINE * 2 / 3)


# Machines besides the choice whose names fit on one screen.
_MOST_DRAWN = 20


@dataclass(frozen=True, slots=True)
class CostRatio:
    """The cost of a machine relative to the cheapest machine, each at its cheapest price plan.

    ``times_cost`` is the ratio of the mean costs, with a 90 % interval over scenarios. A scenario
    is a random draw of the times on all machines together.
    """

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    times_cost: Annotated[Ends, Shown("Times the cost", "number", digits=3)]
    cheapest: Annotated[float, Shown("Cheapest, of 100 scenarios", "number", digits=2)]


class CostRatios(Figure):
    """Chart each machine's cost, divided by the cheapest machine's, as a mark with an interval."""

    def layers(self, alt: Any) -> list[Any]:
        """The line at the ratio 1, then each machine's interval and mark."""
        order = list(dict.fromkeys(self.data.values_of("machine")))
        x = axes.log_axis(alt.X, self.data, "times_cost", "times the cost", also=[1.0])
        base = self.marks(alt).encode(
            y=alt.Y("machine:N", sort=order, title=None, axis=alt.Axis(grid=True))
        )
        quiet = {"color": "var(--ec-series-1)", "opacity": 0.5, "strokeWidth": 3}
        return [
            theme.line_at_one(alt, "times_cost").encode(x=x),
            theme.error_bars(alt, base, "X", "times_cost", **quiet),
            self.data.with_tooltips(
                alt,
                base.mark_point(size=80, filled=True, opacity=1, color="var(--ec-series-1)").encode(
                    x=x, shape=theme.shape_by_kind(alt, self.data)
                ),
            ),
        ]


def cost_ratios(contest: Contest, *, identifier: str, job: str) -> CostRatios | None:
    """Chart costs relative to the cheapest; None for under three machines or if it is free."""
    odds = contest.odds
    if odds is None or len(odds.shares) < LEAST_POINTS or not contest.cheapest.cost.mean:
        return None
    best = one_line(contest.cheapest.name)
    contenders = {
        contender.row.observed.machine: contender
        for contender in contest.competing
        if contender.row is not None
    }
    ranked = sorted(
        (_cost_ratio(contenders[machine], contest.cheapest, odds) for machine in odds.shares),
        key=lambda ratio: (ratio.machine != best, ratio.times_cost[1]),
    )
    drawn, more = ranked[:_MOST_DRAWN], _left_out(len(ranked) - _MOST_DRAWN, "dearer machine")
    return CostRatios(
        id=identifier,
        title=_ratio_finding(drawn, odds),
        description=(
            f"The chart shows the cost of {job}, divided by the cost on {best}, for each machine "
            "at its cheapest plan. Bars are 90 % ranges; errors that a machine shares with "
            f"{best} cancel.{more and f'{more}.'}"
        ),
        data=ChartData(tuple(drawn)),
        source=_source(contest),
        height=24 * len(drawn),
    )


def _cost_ratio(contender: Contender, best: Contender, odds: Odds[Machine]) -> CostRatio:
    assert contender.row is not None, "odds are those of rows"
    machine = contender.row.observed.machine
    low, high = odds.ratios.get(machine, (1.0, 1.0))
    return CostRatio(
        machine=one_line(contender.name),
        price_plan=one_line(contender.plan),
        figure=contender.mark,
        times_cost=(low, times_over(contender.cost.mean, best.cost.mean), high),
        cheapest=100 * odds.shares[machine],
    )


def _ratio_finding(ranked: Sequence[CostRatio], odds: Odds[Machine]) -> str:
    best, second = ranked[:2]
    low, middle, high = (f"{end:.{1 if end < 10 else 0}f}" for end in second.times_cost)
    exact = all(low == high for low, high in odds.ratios.values())
    wins = "" if exact else f" in {scenarios(odds.wins)} scenarios"
    likely = f" (likely {low} to {high})" if low != high else ""
    much = "as much" if middle == "1.0" else f"{middle} times as much"
    costs = "is predicted to cost" if second.figure.startswith("predicted") else "costs"
    return f"{best.machine} costs least{wins}; {second.machine} {costs} {much}{likely}"
