"""The figure of latency percentiles against the rate of arrivals, of servers under LoadGen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.latency import LatencyChart, LatencyPoint
from epochcost.report.escape import one_line
from epochcost.report.figures.parts import MACHINE, Colours
from epochcost.report.serving import ServingRow
from epochcost.report.tables import Column, Table
from epochcost.results.served import LoadGenRun

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
