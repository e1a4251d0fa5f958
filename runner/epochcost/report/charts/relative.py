"""Ratios of time and of cost by machine, beside the line at 1 where both sides are equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from epochcost.analysis.comparisons import CpuBesideGpu, CpuGpuComparison
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
from epochcost.report.wording import mark_words

_QUANTITIES = {"times_cost": "cost", "times_time": "time"}
_INK = "var(--ec-ink)"


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
            *_at_one(alt, x),
            *theme.error_bars(alt, base, "X", "ratio"),
            base.mark_point(size=110, strokeWidth=2).encode(
                x=x,
                shape=alt.Shape("quantity:N", scale=shapes, title="ratio of"),
                tooltip=self.data.tooltips(alt),
            ),
        ]


def _at_one(alt: Any, x: Any) -> list[Any]:
    at_one = alt.Chart(alt.Data(values=[{"ratio": 1}])).encode(x=x)
    return [
        at_one.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color=_INK),
        at_one.mark_text(align="center", dy=-7, color=_INK, text="as the GPU").encode(
            y=alt.value(0)
        ),
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
