"""Latency percentiles against the rate of a server, with the bound that it has to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from epochcost.analysis.serving import ServingRow
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, MachineName, Shown
from epochcost.report.charts.figure import Chart, Colours, Figure, colours_of
from epochcost.report.escape import one_line
from epochcost.results.served import LoadGenRun

# By field: its words, dash and shape.
_PERCENTILES: dict[str, tuple[str, list[int], str]] = {
    "latency_p50": ("median", [1, 0], "circle"),
    "latency_p90": ("90 % below", [6, 3], "square"),
    "latency_p99": ("99 % below", [2, 3], "triangle-up"),
}


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """One run at a rate: what was asked, what was completed, and how fast."""

    machine: MachineName
    asked_samples_per_second: Annotated[float, Shown("Asked samples/s", "number", place="table")]
    samples_per_second: Annotated[float, Shown("Samples/s", "number")]
    latency_p50: Annotated[Decimal, Shown("Latency, median", "seconds")]
    latency_p90: Annotated[Decimal, Shown("Latency, 90 % below", "seconds")]
    latency_p99: Annotated[Decimal, Shown("Latency, 99 % below", "seconds")]
    kept_bound: Annotated[bool, Shown("Within the bound")]


@dataclass(frozen=True)
class LatencyChart(Chart[LoadedRun]):
    """A line for each machine (colour) and percentile (dash and shape), on log axes.

    ``bounds`` are the latencies that servers promise, in seconds.
    """

    bounds: tuple[float, ...]
    colours: Colours
    summary = "Latency percentiles vs. the rate."

    def layers(self, alt: Any) -> list[Any]:
        """A rule for each bound, then lines and points of each percentile."""
        every = [*self.data.values_of(*_PERCENTILES), *self.bounds]
        domain = axes.log_domain(every)
        ticks, label = axes.time_ticks(domain), axes.SECONDS_LABEL
        y = axes.log_scaled(alt.Y, "seconds", domain, "latency", ticks, label)
        words, dashes, shapes = map(list, zip(*_PERCENTILES.values(), strict=True))
        names = dict(zip(_PERCENTILES, words, strict=True))
        values = self.data.fold(names, "percentile", "seconds")
        base = alt.Chart(alt.Data(values=values)).encode(
            x=axes.log_axis(alt.X, self.data, "samples_per_second", "samples per second"),
            y=y,
            color=theme.colour_by(alt, self.data, "machine", self.colours),
        )
        dash, shape = {"domain": words, "range": dashes}, {"domain": words, "range": shapes}
        bounds = alt.Chart(alt.Data(values=[{"seconds": bound} for bound in self.bounds]))
        return [
            bounds.mark_rule(strokeDash=[4, 4], color="var(--ec-ink)").encode(y=y),
            base.mark_line(strokeWidth=2).encode(
                strokeDash=alt.StrokeDash("percentile:N", scale=dash, title="latency")
            ),
            base.mark_point(filled=True, size=60).encode(
                shape=alt.Shape("percentile:N", scale=shape, title="latency"),
                tooltip=self.data.tooltips(alt),
            ),
        ]


def latency_by_rate(
    rows: Sequence[ServingRow], *, identifier: str, colours: Colours
) -> Figure | None:
    """Every run of every server at a rate; None where no server was measured."""
    # Rows of several prices share their runs.
    found = {
        (row.machine, row.load, row.batching): row for row in rows if row.bound_seconds is not None
    }
    runs = tuple(
        _run(one_line(row.machine.name), run)
        for row in found.values()
        for run in sorted(row.runs, key=lambda run: run.samples_per_second)
        if run.asked_samples_per_second is not None
    )
    if not runs:
        return None
    data = ChartData(runs)
    bounds = sorted({row.bound_seconds for row in found.values() if row.bound_seconds})
    return Figure(
        id=identifier,
        title="Latency vs. rate",
        description=(
            "Every run of the search for the highest rate, by LoadGen's own percentiles; the "
            "dashed rule is the bound that the server has to keep."
        ),
        chart=LatencyChart(data, tuple(bounds), colours_of(colours, data)),
    )


def _run(machine: str, run: LoadGenRun) -> LoadedRun:
    latency = run.latency
    return LoadedRun(
        machine,
        run.asked_samples_per_second or 0.0,
        run.samples_per_second,
        Decimal(latency.p50_nanoseconds) / 10**9,
        Decimal(latency.p90_nanoseconds) / 10**9,
        Decimal(latency.p99_nanoseconds) / 10**9,
        bool(run.kept_bound),
    )
