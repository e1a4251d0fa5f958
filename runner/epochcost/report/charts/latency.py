"""Latency percentiles against the rate of a server, with the bound that it has to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.serving import ServingRow
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import MACHINE, Colours, Figure
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table
from epochcost.results.served import LoadGenRun

_HEIGHT = 320
_DASHES = {"median": [1, 0], "90 % below": [6, 3], "99 % below": [2, 3]}
_SHAPES = {"median": "circle", "90 % below": "square", "99 % below": "triangle-up"}


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """One percentile of one run, in seconds, at the rate that was completed."""

    machine: str
    percentile: str
    samples_per_second: float
    seconds: float


@dataclass(frozen=True)
class LatencyChart:
    """The chart's input; ``bounds`` are the latencies that servers promise, in seconds."""

    points: tuple[LatencyPoint, ...]
    bounds: tuple[float, ...]
    colours: tuple[tuple[str, int], ...]

    def spec(self) -> dict[str, Any]:
        """A line for each machine (colour) and percentile (dash and shape), on log axes."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        return theme.finished(layers, _HEIGHT, "Latency percentiles against the rate.")


def _layers(alt: Any, chart: LatencyChart) -> list[Any]:
    rates = axes.log_domain(point.samples_per_second for point in chart.points)
    times = axes.log_domain([*(point.seconds for point in chart.points), *chart.bounds])
    x = alt.X(
        "rate:Q",
        scale=alt.Scale(type="log", domain=rates, nice=False),
        axis=alt.Axis(values=axes.log_ticks(rates), labelExpr=axes.COUNT_LABEL),
        title="samples per second (log scale)",
    )
    y = alt.Y(
        "seconds:Q",
        scale=alt.Scale(type="log", domain=times, nice=False),
        axis=alt.Axis(values=axes.time_ticks(times), labelExpr=axes.SECONDS_LABEL),
        title="latency (log scale)",
    )
    series = theme.series_scale(dict(chart.colours), (point.machine for point in chart.points))
    colour = alt.Color("machine:N", scale=alt.Scale(**series), title="machine")
    base = alt.Chart(alt.Data(values=[_datum(point) for point in chart.points])).encode(
        x=x, y=y, color=colour
    )
    names = list(_DASHES)
    dash = alt.Scale(domain=names, range=list(_DASHES.values()))
    shape = alt.Scale(domain=names, range=list(_SHAPES.values()))
    tips = [
        alt.Tooltip("machine:N"),
        alt.Tooltip("percentile:N"),
        alt.Tooltip("rate:Q", title="samples per second", format=".4~g"),
        alt.Tooltip("seconds:Q", title="latency in s", format=".3~g"),
    ]
    bounds = alt.Chart(alt.Data(values=[{"seconds": bound} for bound in chart.bounds]))
    return [
        bounds.mark_rule(strokeDash=[4, 4], color="var(--ec-ink)").encode(y=y),
        base.mark_line(strokeWidth=2).encode(
            strokeDash=alt.StrokeDash("percentile:N", scale=dash, title="latency")
        ),
        base.mark_point(filled=True, size=60).encode(
            shape=alt.Shape("percentile:N", scale=shape, title="latency"), tooltip=tips
        ),
    ]


def _datum(point: LatencyPoint) -> dict[str, Any]:
    return {
        "machine": point.machine,
        "percentile": point.percentile,
        "rate": point.samples_per_second,
        "seconds": point.seconds,
    }


_PERCENTILES = (
    ("median", "p50_nanoseconds"),
    ("90 % below", "p90_nanoseconds"),
    ("99 % below", "p99_nanoseconds"),
)


def latency_by_rate(
    rows: Sequence[ServingRow], *, identifier: str, colours: Colours
) -> Figure | None:
    """Every run of every server at a rate; None where no server was measured."""
    # Rows of several prices share their runs.
    found = {
        (row.machine, row.load, row.batching): row for row in rows if row.bound_seconds is not None
    }
    runs = [
        (one_line(row.machine.name), run)
        for row in found.values()
        for run in sorted(row.runs, key=lambda run: run.samples_per_second)
        if run.asked_samples_per_second is not None
    ]
    if not runs:
        return None
    bounds = sorted({row.bound_seconds for row in found.values() if row.bound_seconds})
    names = {name for name, _ in runs}
    points = tuple(point for name, run in runs for point in _points(name, run))
    return Figure(
        id=identifier,
        title="Latency against rate",
        description=(
            "Every run of the search for the highest rate, by LoadGen's own percentiles; the "
            "dashed rule is the bound that the server has to keep."
        ),
        chart=LatencyChart(points, tuple(bounds), tuple(c for c in colours if c[0] in names)),
        table=_table(runs),
    )


def _points(machine: str, run: LoadGenRun) -> Iterator[LatencyPoint]:
    for words, attribute in _PERCENTILES:
        seconds = getattr(run.latency, attribute) / 1e9
        yield LatencyPoint(machine, words, run.samples_per_second, seconds)


def _table(runs: Sequence[tuple[str, LoadGenRun]]) -> Table:
    columns = (
        MACHINE,
        Column("asked_samples_per_second", "Asked samples/s", "number"),
        Column("samples_per_second", "Samples/s", "number"),
        *(
            Column(f"latency_{name.split('_')[0]}_s", f"Latency, {words}", "seconds")
            for words, name in _PERCENTILES
        ),
        Column("kept_bound", "Kept the bound"),
    )
    rows = (
        (
            machine,
            _digits(run.asked_samples_per_second or 0),
            _digits(run.samples_per_second),
            *(Decimal(getattr(run.latency, name)) / 10**9 for _, name in _PERCENTILES),
            "yes" if run.kept_bound else "no",
        )
        for machine, run in runs
    )
    return Table(columns, tuple(rows))


def _digits(value: float) -> Decimal:
    return Decimal(f"{value:.4g}")
