"""Ratios of time and of cost by machine, beside the line at 1 where both sides are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from epochcost.analysis.comparisons import CpuBesideGpu, CpuGpuComparison
from epochcost.analysis.machines import Machine
from epochcost.analysis.odds import Odds, scenarios
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
from epochcost.report.charts.figure import Chart, Figure, ends, machine_name
from epochcost.report.escape import one_line
from epochcost.report.ranking import Contender, Contest
from epochcost.report.wording import mark_words
from epochcost.units import count_words

_QUANTITIES = {"times_cost": "cost", "times_time": "time"}
_INK = "var(--ec-ink)"
# Machines beside the choice for which names have room on one screen.
_MOST_DRAWN = 20


@dataclass(frozen=True, slots=True)
class CpuRatio:
    """A CPU's cost and time over those of the GPU."""

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    batch_size: BatchSize
    times_cost: Annotated[Ends, Shown("Times the GPU's cost", "number", bounds=False)]
    times_time: Annotated[Ends, Shown("Times the GPU's time", "number", bounds=False)]
    gpu: Annotated[str, Shown("GPU", place="table")]
    gpu_price_plan: Annotated[str, Shown("GPU's price plan", place="table")]


@dataclass(frozen=True)
class RelativeChart(Chart[CpuRatio]):
    """A row for each machine over a logarithmic axis of ratios, with the line at 1."""

    summary = "Times the GPU's cost and time, by machine."
    height: ClassVar = {"step": 44}

    def layers(self, alt: Any) -> list[Any]:
        """The line at 1, then bars and points of both quantities."""
        order = list(dict.fromkeys(self.data.values_of("machine")))
        domain = axes.log_domain([*self.data.values_of(*_QUANTITIES), 1.0])
        ticks = sorted({*axes.log_ticks(domain), 1.0})
        x = axes.log_scaled(alt.X, "ratio", domain, "times the GPU's", ticks)
        names = list(_QUANTITIES.values())
        colours = theme.series_scale({name: at for at, name in enumerate(names)}, names)
        shapes = {"domain": names, "range": ["circle", "triangle-up"]}
        values = self.data.fold(_QUANTITIES, "quantity", "ratio")
        base = alt.Chart(alt.Data(values=values)).encode(
            y=alt.Y("machine:N", sort=order, title=None, axis=alt.Axis(grid=True)),
            color=alt.Color("quantity:N", scale=colours, title="ratio of"),
        )
        return [
            *_at_one(alt, x, "as the GPU"),
            *theme.error_bars(alt, base, "X", "ratio"),
            base.mark_point(size=110, strokeWidth=2).encode(
                x=x,
                shape=alt.Shape("quantity:N", scale=shapes, title="ratio of"),
                tooltip=self.data.tooltips(alt),
            ),
        ]


@dataclass(frozen=True, slots=True)
class CostRatio:
    """A machine's cost over that of the choice, each at its cheapest plan, by joint draws."""

    machine: MachineName
    price_plan: PlanName
    figure: FigureKind
    times_cost: Annotated[Ends, Shown("Times the cost", "number", digits=3)]
    cheapest: Annotated[float, Shown("Cheapest in so many of 100 scenarios", "number", digits=2)]


@dataclass(frozen=True)
class CostRatioChart(Chart[CostRatio]):
    """A dot with its range for each machine, over a logarithmic axis with the ``choice`` at 1."""

    choice: str
    height: ClassVar = {"step": 24}

    @property
    def summary(self) -> str:
        """What the chart is of."""
        return f"Cost over that on {self.choice}, by machine."

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


def _at_one(alt: Any, x: Any, words: str) -> list[Any]:
    at_one = alt.Chart(alt.Data(values=[{"ratio": 1}])).encode(x=x)
    return [
        at_one.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color=_INK),
        at_one.mark_text(align="center", dy=-7, color=_INK, text=words).encode(y=alt.value(0)),
    ]


def cpu_against_gpu_figure(
    found: CpuGpuComparison | None, *, identifier: str, job: str
) -> Figure | None:
    """Time and cost over the GPU's, by machine; None below two CPUs."""
    if found is None or len(found.cpus) < 2:
        return None
    gpu = machine_name(found.gpu.observed)
    return Figure(
        id=identifier,
        title=f"One {job} on CPUs vs. {gpu}",
        description=(
            f"Both at batch size {found.gpu.observed.batch_size}, each machine at its cheapest "
            f"current plan; the GPU is the cheapest one ({mark_words(found.gpu.mark)}). Left of "
            "the line at 1 a CPU is cheaper, or faster."
        ),
        chart=RelativeChart(
            ChartData(tuple(_ratio(one, gpu, found.gpu.plan) for one in found.cpus))
        ),
    )


def _ratio(one: CpuBesideGpu, gpu: str, gpu_plan: str) -> CpuRatio:
    return CpuRatio(
        machine_name(one.row.observed),
        one.row.plan,
        one.row.mark,
        one.row.observed.batch_size,
        ends(one.cost),
        ends(one.time),
        gpu,
        gpu_plan,
    )


def cost_ratios(found: Contest | None, *, identifier: str, job: str) -> Figure | None:
    """The cost of every machine over that of the cheapest; None without odds of two machines."""
    odds = found.odds if found else None
    if found is None or odds is None or not odds.ratios:
        return None
    best = one_line(found.cheapest.name)
    contenders = {one.row.observed.machine: one for one in found.competing if one.row is not None}
    ranked = sorted(
        (_cost_ratio(contenders[machine], machine, odds) for machine in odds.shares),
        key=lambda ratio: (ratio.machine != best, ratio.times_cost[1]),
    )
    drawn, left = ranked[:_MOST_DRAWN], len(ranked) - _MOST_DRAWN
    more = f" {count_words(left, 'dearer machine')} left out." if left > 0 else ""
    return Figure(
        id=identifier,
        title=_ratio_finding(drawn, odds),
        description=(
            f"Cost of {job} over that on {best}, each machine at its cheapest plan: the median and "
            "the range of nine in ten scenarios, in which all times are drawn together, so that "
            f"what machines share cancels.{more}"
        ),
        chart=CostRatioChart(ChartData(tuple(drawn)), best),
    )


def _cost_ratio(one: Contender, machine: Machine, odds: Odds[Machine]) -> CostRatio:
    return CostRatio(
        machine=one_line(one.name),
        price_plan=one_line(one.plan),
        figure=one.mark,
        times_cost=odds.ratios.get(machine, (1.0, 1.0, 1.0)),
        cheapest=100 * odds.shares[machine],
    )


def _ratio_finding(ranked: Sequence[CostRatio], odds: Odds[Machine]) -> str:
    """What the chart shows, in a sentence without its stop."""
    best, second = ranked[:2]
    low, middle, high = (f"{end:.{1 if end < 10 else 0}f}" for end in second.times_cost)
    exact = all(ends[0] == ends[2] for ends in odds.ratios.values())
    wins = "" if exact else f" in {scenarios(odds.wins)} scenarios"
    likely = f" (likely {low} to {high})" if low != high else ""
    return (
        f"{best.machine} costs least{wins}; {second.machine} costs {middle} times as much{likely}"
    )
