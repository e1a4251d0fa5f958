"""Ratios of time and of cost by machine, beside the line at 1 where both sides are equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.comparisons import CpuBesideGpu, CpuGpuComparison
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import BATCH, MACHINE, MARK, PLAN, Figure, machine_name
from epochcost.report.tables import Column, Table, Value
from epochcost.statistics import Bounded

_ROW_HEIGHT = 44
_SHAPES = {"cost": "circle", "time": "triangle-up"}


@dataclass(frozen=True, slots=True)
class Ratio:
    """One quantity of one machine, ``cost`` or ``time``; ``value`` is (low, mean, high)."""

    machine: str
    quantity: str
    mark: str
    value: tuple[float, float, float]


@dataclass(frozen=True)
class RelativeChart:
    """The chart's input; ``title`` is the horizontal axis."""

    title: str
    ratios: tuple[Ratio, ...]

    def spec(self) -> dict[str, Any]:
        """A row for each machine over a logarithmic axis of ratios, with the line at 1."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        height = _ROW_HEIGHT * len({one.machine for one in self.ratios})
        return theme.finished(_layers(alt, self), height, f"{self.title}, by machine.")


def _layers(alt: Any, chart: RelativeChart) -> list[Any]:
    data = alt.Data(values=[_datum(one) for one in chart.ratios])
    domain = axes.log_domain(end for one in chart.ratios for end in (*axes.drawn(one.value), 1.0))
    scale = alt.Scale(type="log", domain=domain, nice=False)
    ticks = sorted({*axes.log_ticks(domain), 1.0})
    x = alt.X(
        "value:Q",
        scale=scale,
        axis=alt.Axis(values=ticks, labelExpr="format(datum.value, '~r')"),
        title=f"{chart.title} (log scale)",
    )
    order = list(dict.fromkeys(one.machine for one in chart.ratios))
    y = alt.Y("machine:N", sort=order, title=None, axis=alt.Axis(grid=True))
    names = list(_SHAPES)
    colours = theme.series_scale({name: at for at, name in enumerate(names)}, names)
    colour = alt.Color("quantity:N", scale=alt.Scale(**colours), title="ratio of")
    shapes = alt.Scale(domain=names, range=list(_SHAPES.values()))
    base = alt.Chart(data).encode(y=y, color=colour)
    tips = [
        alt.Tooltip("machine:N"),
        alt.Tooltip("quantity:N", title="ratio of"),
        alt.Tooltip("value:Q", title="times the GPU's", format=".3~g"),
        alt.Tooltip("mark:N", title="figure"),
    ]
    return [
        *_break_even(alt, scale),
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2=alt.X2("high")),
        base.mark_point(size=110, strokeWidth=2).encode(
            x=x, shape=alt.Shape("quantity:N", scale=shapes, title="ratio of"), tooltip=tips
        ),
    ]


def _break_even(alt: Any, scale: Any) -> list[Any]:
    one = alt.Chart(alt.Data(values=[{"value": 1, "words": "as the GPU"}]))
    x = alt.X("value:Q", scale=scale)
    return [
        one.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color="var(--ec-ink)").encode(x=x),
        one.mark_text(align="center", dy=-7, color="var(--ec-ink)").encode(
            x=x, y=alt.value(0), text="words:N"
        ),
    ]


def _datum(one: Ratio) -> dict[str, Any]:
    low, value, high = axes.drawn(one.value)
    return {
        "machine": one.machine,
        "quantity": one.quantity,
        "mark": one.mark,
        "low": low,
        "value": value,
        "high": high,
    }


def cpu_against_gpu_figure(
    found: CpuGpuComparison | None, *, identifier: str, job: str
) -> Figure | None:
    """Time and cost over the GPU's, by machine; None where there is nothing to compare."""
    if found is None:
        return None
    gpu = machine_name(found.gpu.observed)
    ratios = tuple(ratio for one in found.cpus for ratio in _ratios(one))
    return Figure(
        id=identifier,
        title=f"One {job} on CPUs, over that on {gpu}",
        description=(
            f"Both at batch size {found.gpu.observed.batch_size}, each machine at its cheapest "
            f"current plan; the GPU is that with the cheapest figure ({found.gpu.mark}). Left of "
            "the line at 1 a CPU is cheaper, or faster."
        ),
        chart=RelativeChart("times the GPU's", ratios),
        table=_table(found),
    )


def _ratios(one: CpuBesideGpu) -> Iterator[Ratio]:
    name, mark = machine_name(one.row.observed), one.row.mark
    yield Ratio(name, "cost", mark, _ends(one.cost))
    yield Ratio(name, "time", mark, _ends(one.time))


def _ends(value: Bounded) -> tuple[float, float, float]:
    return value.low, value.mean, value.high


def _table(found: CpuGpuComparison) -> Table:
    columns = (
        MACHINE,
        PLAN,
        MARK,
        BATCH,
        Column("times_cost", "Times the GPU's cost", "number"),
        Column("times_time", "Times the GPU's time", "number"),
        Column("gpu", "GPU"),
        Column("gpu_price_plan", "GPU's price plan"),
    )
    return Table(columns, tuple(_row(one, found) for one in found.cpus))


def _row(one: CpuBesideGpu, found: CpuGpuComparison) -> tuple[Value, ...]:
    return (
        machine_name(one.row.observed),
        one.row.plan,
        one.row.mark,
        one.row.observed.batch_size,
        Decimal(f"{one.cost.mean:.4g}"),
        Decimal(f"{one.time.mean:.4g}"),
        machine_name(found.gpu.observed),
        found.gpu.plan,
    )
