"""A roofline: achieved operations per second against operations per byte, below the roofs.

A roof that was measured is a solid line, a published one dashed; each says at its end which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.roofline import AchievedRate, MeasuredRoof
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import BATCH, MARK, Figure
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table, Value

_HEIGHT = 340
_WORKS = {"training": 0, "inference": 1}
_FLOPS_LABEL = (
    "datum.value >= 1e12 ? format(datum.value / 1e12, '~g') + ' TFLOP/s'"
    " : datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' GFLOP/s'"
    " : format(datum.value / 1e6, '~g') + ' MFLOP/s'"
)


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """One work; ``intensity`` in operations per byte, ``flops`` in operations per second."""

    workload: str
    work: str
    mark: str
    batch_size: int
    intensity: float
    flops: float


@dataclass(frozen=True, slots=True)
class RoofLine:
    """One roof; without ``bytes_per_second`` it is flat all along."""

    name: str
    peak_flops: float
    bytes_per_second: float | None
    measured: bool


@dataclass(frozen=True)
class RooflineChart:
    """The chart's input."""

    points: tuple[RoofPoint, ...]
    roofs: tuple[RoofLine, ...]

    def spec(self) -> dict[str, Any]:
        """Points by work (colour) and kind of figure (shape), and the roof as a line."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        return theme.finished(layers, _HEIGHT, "Achieved operations per second below the roof.")


def _layers(alt: Any, chart: RooflineChart) -> list[Any]:
    span = axes.log_domain(point.intensity for point in chart.points)
    roofs = [(roof, _corners(roof, span)) for roof in chart.roofs]
    heights = [point.flops for point in chart.points]
    heights += [corner["flops"] for _, corners in roofs for corner in corners]
    domain = axes.log_domain(heights)
    x = alt.X(
        "intensity:Q",
        scale=alt.Scale(type="log", domain=span, nice=False),
        axis=alt.Axis(values=axes.log_ticks(span), labelExpr=axes.COUNT_LABEL),
        title="operations per byte moved, at most (log scale)",
    )
    y = alt.Y(
        "flops:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=axes.log_ticks(domain), labelExpr=_FLOPS_LABEL),
        title="achieved operations per second (log scale)",
    )
    lines = [layer for roof, corners in roofs for layer in _roof_line(alt, roof, corners, x, y)]
    return [*lines, _points(alt, chart, x, y)]


def _points(alt: Any, chart: RooflineChart, x: Any, y: Any) -> Any:
    works = theme.series_scale(_WORKS, (point.work for point in chart.points))
    marks = theme.mark_scale(point.mark for point in chart.points)
    tips = [
        alt.Tooltip("workload:N"),
        alt.Tooltip("work:N"),
        alt.Tooltip("batch_size:Q", title="batch size"),
        alt.Tooltip("flops:Q", title="operations per second", format=".3~s"),
        alt.Tooltip("mark:N", title="figure"),
    ]
    return (
        alt.Chart(alt.Data(values=[_datum(point) for point in chart.points]))
        .mark_point(size=90, strokeWidth=2, filled=False)
        .encode(
            x=x,
            y=y,
            color=alt.Color("work:N", scale=alt.Scale(**works), title="work"),
            shape=alt.Shape("mark:N", scale=alt.Scale(**marks), title="figure"),
            tooltip=tips,
        )
    )


def _corners(roof: RoofLine, span: tuple[float, float]) -> list[dict[str, float]]:
    """The corners of a roof from left to right."""
    peak, rate = roof.peak_flops, roof.bytes_per_second
    ridge = peak / rate if rate else span[0]
    if rate and span[0] < ridge < span[1]:
        corners = [span[0], ridge, span[1]]
    else:
        corners = [span[0], span[1]]
    return [{"intensity": at, "flops": min(peak, rate * at) if rate else peak} for at in corners]


def _roof_line(
    alt: Any, roof: RoofLine, corners: list[dict[str, float]], x: Any, y: Any
) -> list[Any]:
    line = alt.Chart(alt.Data(values=corners)).encode(x=x, y=y)
    name = alt.Chart(alt.Data(values=[corners[-1] | {"words": roof.name}])).encode(x=x, y=y)
    style = {"strokeWidth": 1.5} if roof.measured else {"strokeWidth": 2, "strokeDash": [6, 4]}
    return [
        line.mark_line(color="var(--ec-ink)", **style),
        name.mark_text(align="right", dx=-6, dy=-8, color="var(--ec-ink)").encode(
            text=alt.Text("words:N")
        ),
    ]


def _datum(point: RoofPoint) -> dict[str, Any]:
    return {
        "workload": point.workload,
        "work": point.work,
        "mark": point.mark,
        "batch_size": point.batch_size,
        "intensity": point.intensity,
        "flops": point.flops,
    }


def roofline(
    found: Sequence[AchievedRate], measured: Sequence[MeasuredRoof] = (), *, identifier: str
) -> Figure | None:
    """Every work of one device below its roofs; None where nothing can be counted.

    ``measured`` are those of all hosts of the machine.
    """
    if not found:
        return None
    roof = found[0].roof
    points = tuple(
        RoofPoint(
            one_line(one.observed.subject.name),
            one.observed.mode,
            one.observed.kind,
            one.observed.batch_size,
            one.intensity,
            one.flops_per_second,
        )
        for one in found
    )
    return Figure(
        id=identifier,
        title=f"Achieved operations on the {'GPU' if roof.device == 'cuda' else 'CPU'}",
        description=(
            "The best batch size of each work: counted operations over the measured or published "
            "time. Bytes are those of parameters and optimizer alone, so points stand at or right "
            f"of their true place. {_roof_words(found)} {_measured_words(found)}"
        ).rstrip(),
        chart=RooflineChart(points, tuple(_roofs(found, measured))),
        table=_table(found),
    )


def _roofs(found: Sequence[AchievedRate], measured: Sequence[MeasuredRoof]) -> Iterator[RoofLine]:
    roof = found[0].roof
    if roof.peak_flops is not None:
        yield RoofLine(
            "published: peak of the spec", roof.peak_flops, roof.bytes_per_second, measured=False
        )
    for one in measured:
        yield RoofLine(one.name, one.peak_flops, one.bytes_per_second, measured=True)


def _measured_words(found: Sequence[AchievedRate]) -> str:
    """How near the best comes to what was measured; nothing where nothing was."""
    shares = [one.of_measured_peak for one in found if one.of_measured_peak is not None]
    if not shares:
        return ""
    return (
        "Solid lines are what the host itself did at most, a product of matrices and a copy of "
        f"memory; the best reaches {max(shares):.0%} of that product."
    )


def _roof_words(found: Sequence[AchievedRate]) -> str:
    roof = found[0].roof
    if roof.peak_flops is None:
        return "The machine's spec states no FP32 peak, so no published roof is drawn."
    best = max(one.of_peak or 0 for one in found)
    slope = "" if roof.bytes_per_second else " Its memory bandwidth is not in the spec."
    return f"The best reaches {best:.0%} of the FP32 peak.{slope}"


def _table(found: Sequence[AchievedRate]) -> Table:
    columns = (
        Column("workload", "Workload"),
        Column("work", "Work"),
        BATCH,
        MARK,
        Column("achieved_gflops_per_second", "Achieved GFLOP/s", "number"),
        Column("share_of_peak", "Share of the peak", "number"),
        Column("share_of_measured_peak", "Share of the measured peak", "number"),
        Column("least_gb_per_second", "Least GB/s", "number"),
        Column("least_share_of_bandwidth", "Least share of the bandwidth", "number"),
        Column("least_share_of_measured_bandwidth", "Least share of the measured copy", "number"),
        Column("operations_per_byte", "Operations per byte, at most", "number"),
    )
    return Table(columns, tuple(_row(one) for one in found))


def _row(one: AchievedRate) -> tuple[Value, ...]:
    return (
        one_line(one.observed.subject.name),
        one.observed.mode,
        one.observed.batch_size,
        one.observed.kind,
        _digits(one.flops_per_second / 1e9),
        _digits(one.of_peak),
        _digits(one.of_measured_peak),
        _digits(one.least_bytes_per_second / 1e9),
        _digits(one.of_bandwidth),
        _digits(one.of_measured_bandwidth),
        _digits(one.intensity),
    )


def _digits(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(f"{value:.3g}")
