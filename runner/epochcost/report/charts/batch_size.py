"""Quantities against batch size, one line per series and work: time, cost, rate and memory.

Rates and memory also show where a sweep of batch sizes ended, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from epochcost.analysis.observations import Observation
from epochcost.analysis.rows import Row
from epochcost.cost import Estimate
from epochcost.plan.sweep import Cause
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import (
    BatchSize,
    ChartData,
    Ends,
    MachineName,
    Shown,
    WorkloadName,
    WorkName,
)
from epochcost.report.charts.figure import Chart, Colours, Figure, colours_of, ends, machine_name
from epochcost.report.charts.palette import LIGHT_SERIES
from epochcost.report.escape import one_line
from epochcost.results.limits import BatchLimit
from epochcost.units import count_words

_INK = "var(--ec-ink)"
_DASHES = {"training": [1, 0], "inference": [5, 4]}
_CAUSES: Mapping[Cause, str] = MappingProxyType(
    {
        "memory": "out of memory",
        "throughput": "throughput falls",
        "maximum": "no larger batch",
        "time": "step too long",
        "failure": "fails",
    }
)
_TITLES = {
    "time_per_example": "time per example",
    "cost_per_million": "cost of a million examples",
    "examples_per_second": "examples per second",
    "peak_memory": "peak memory",
}
_TIMES = "Measured mean time of a batch, per example; bars are 95 % intervals. Lower is faster."
_SWEPT = {
    "examples_per_second": "Examples per batch over its measured mean time; bars are 95 % "
    "intervals. Higher is faster.",
    "peak_memory": "The most memory that the measuring process used, of the host or, where it ran "
    "on one, of the GPU.",
}
_TimePerExample = Annotated[Ends, Shown("Time per example", "seconds")]


@dataclass(frozen=True, slots=True)
class MachineTime:
    """One batch size on one machine."""

    machine: MachineName
    work: WorkName
    batch_size: BatchSize
    time_per_example: _TimePerExample


@dataclass(frozen=True, slots=True)
class WorkloadTime:
    """One batch size of one workload."""

    workload: WorkloadName
    work: WorkName
    batch_size: BatchSize
    time_per_example: _TimePerExample


@dataclass(frozen=True, slots=True)
class MachineCost:
    """One batch size on one machine at its cheapest plan."""

    machine: MachineName
    work: WorkName
    batch_size: BatchSize
    cost_per_million: Annotated[Ends, Shown("Cost of a million", "money")]


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One batch size of a sweep; ``end`` says in a few words why it was the last."""

    machine: MachineName
    work: WorkName
    batch_size: BatchSize
    examples_per_second: Annotated[Ends, Shown("Examples/s", "number", bounds=False)]
    peak_memory: Annotated[int | None, Shown("Peak memory", "bytes")]
    sweep_ended_because: Annotated[str | None, Shown("End of the sweep")]
    end: Annotated[str | None, Shown("End", place="chart")]


@dataclass(frozen=True)
class AgainstBatchSize(Chart[Any]):
    """A field of the rows, which ``title`` names, over the batch sizes."""

    title: str
    by: str
    quantity: str
    colours: Colours
    height = 300

    @property
    def summary(self) -> str:
        """What the chart is of."""
        return f"{self.title[:1].upper()}{self.title[1:]} vs. batch size."

    @property
    def picks(self) -> str:
        """What tells series apart."""
        return self.by

    def layers(self, alt: Any) -> list[Any]:
        """Lines with points and error bars over a logarithmic axis of measured batch sizes."""
        works = sorted(set(self.data.values_of("work")), reverse=True)
        dash = {"domain": works, "range": [_DASHES[work] for work in works]}
        x = self._batch_sizes(alt)
        y = axes.log_axis(alt.Y, self.data, self.quantity, self.title)
        plain = self.marks(alt)
        base = plain.encode(x=x, color=theme.colour_by(alt, self.data, self.by, self.colours))
        tooltip = self.data.tooltips(alt)
        return [
            base.mark_line(strokeWidth=2).encode(
                y=y, strokeDash=alt.StrokeDash("work:N", scale=dash, title="job")
            ),
            *theme.error_bars(alt, base, "Y", self.quantity),
            base.mark_point(filled=True, size=55).encode(y=y, tooltip=tooltip),
            *_ends_of_sweeps(alt, plain, x, y, tooltip),
        ]

    def _batch_sizes(self, alt: Any) -> Any:
        sizes = sorted(set(self.data.values_of("batch_size")))
        domain, title = axes.log_domain(sizes), "batch size in examples"
        return axes.log_scaled(alt.X, "batch_size", domain, title, sizes, separation=4)


def _ends_of_sweeps(alt: Any, plain: Any, x: Any, y: Any, tooltip: list[Any]) -> list[Any]:
    """A ring around the last point of each sweep, with the reason beside it."""
    # A layer without data has no extent, of which Vega warns.
    if not any("end" in row for row in plain.data["values"]):
        return []
    base = plain.encode(x=x, y=y).transform_filter("isValid(datum.end)")
    ring = base.mark_point(filled=False, size=190, strokeWidth=1.5, color=_INK)
    words = base.mark_text(align="right", dx=-9, dy=-11, color=_INK)
    return [ring.encode(tooltip=tooltip), words.encode(text=alt.Text("end:N"))]


def time_by_batch(
    observations: Sequence[Observation], *, identifier: str, colours: Colours
) -> Figure | None:
    """Measured time per example of one workload, by machine; None where nothing was measured."""
    points = tuple(
        MachineTime(machine_name(one), one.mode, one.batch_size, _per_example(one))
        for one in _timed(observations)
    )
    return _figure(points, "time_per_example", _TIMES, identifier, colours)


def time_by_batch_on_machine(
    observations: Sequence[Observation], *, identifier: str
) -> Figure | None:
    """The same of one machine, by workload: those of most batch sizes, a colour for each.

    A workload of one batch size has no line and stays in the page's tables.
    """
    timed = [(one_line(one.workload.name), one) for one in _timed(observations)]
    sizes = Counter(name for name, _ in sorted({(name, one.batch_size) for name, one in timed}))
    lines = [name for name, count in sizes.most_common(len(LIGHT_SERIES)) if count > 1]
    points = tuple(
        WorkloadTime(name, one.mode, one.batch_size, _per_example(one))
        for name, one in timed
        if name in lines
    )
    left = len(sizes) - len(lines)
    note = f" {count_words(left, 'other workload')}: in the tables below." if left else ""
    numbers = tuple((name, at) for at, name in enumerate(sorted(lines)))
    return _figure(points, "time_per_example", _TIMES + note, identifier, numbers, by="workload")


def _timed(observations: Iterable[Observation]) -> list[Observation]:
    return [one for one in observations if one.kind == "measured" and one.step is not None]


def _per_example(observed: Observation) -> Ends:
    assert observed.step is not None, "only what was timed has a point"
    low, mean, high = ends(observed.step)
    return low / observed.batch_size, mean / observed.batch_size, high / observed.batch_size


def _figure(
    rows: Sequence[Any],
    quantity: str,
    description: str,
    identifier: str,
    colours: Colours,
    *,
    by: str = "machine",
    currency: str = "USD",
) -> Figure | None:
    """The rows that have a quantity over their batch sizes; None of none."""
    drawn = tuple(one for one in rows if getattr(one, quantity) is not None)
    if not drawn:
        return None
    data, machines = ChartData(drawn, currency), by == "machine"
    known = colours_of(colours, data) if machines else colours
    chart = AgainstBatchSize(data, _TITLES[quantity], by, quantity, known, paired=machines)
    return Figure(identifier, chart.summary.rstrip("."), description, chart)


def cost_by_batch(rows: Sequence[Row], *, identifier: str, colours: Colours) -> Figure | None:
    """Measured cost of a million examples against batch size, at each machine's cheapest plan."""
    found = _cheapest_measured(rows)
    currency = found[0][1].currency if found else "USD"
    points = [_cost(row, cost) for row, cost in found if cost.currency == currency]
    description = (
        "The measured times at each machine's cheapest current plan, on a machine that is always "
        "busy; bars are the 95 % intervals of the time, in money."
    )
    quantity = "cost_per_million"
    return _figure(points, quantity, description, identifier, colours, currency=currency)


def _cheapest_measured(rows: Iterable[Row]) -> list[tuple[Row, Estimate]]:
    """The cheapest plan of each measured machine, mode and batch size: rows come cheapest first."""
    best: dict[tuple[object, ...], tuple[Row, Estimate]] = {}
    for row in rows:
        cost = row.cost(row.observed.goals[0])
        if row.current and row.observed.kind == "measured" and isinstance(cost, Estimate):
            key = (row.observed.machine, row.observed.mode, row.observed.batch_size)
            best.setdefault(key, (row, cost))
    return list(best.values())


def _cost(row: Row, cost: Estimate) -> MachineCost:
    """The cost of a million examples: an epoch's is scaled by the examples that it covers."""
    observed = row.observed
    time = observed.epoch or observed.million
    assert time is not None, "a measured observation has a time"
    assert observed.step is not None, "a measured observation has a step"
    examples = time.mean / observed.step.mean * observed.batch_size
    low, mean, high = (
        float(amount * 1_000_000 / examples) for amount in (cost.low, cost.mean, cost.high)
    )
    return MachineCost(
        machine_name(observed), observed.mode, observed.batch_size, (low, mean, high)
    )


def sweep_by_batch(
    quantity: Literal["examples_per_second", "peak_memory"],
    observations: Sequence[Observation],
    limits: Sequence[BatchLimit],
    *,
    identifier: str,
    colours: Colours,
) -> Figure | None:
    """A quantity of one workload's trials, and where sweeps ended; None where none was measured."""
    words = f"{_SWEPT[quantity]} A ring marks where the sweep of batch sizes ended."
    return _figure(_sweep_points(observations, limits), quantity, words, identifier, colours)


def _sweep_points(
    observations: Sequence[Observation], limits: Sequence[BatchLimit]
) -> tuple[SweepPoint, ...]:
    points = []
    for one in _timed(observations):
        limit = _ended_at(one, limits)
        cause = _CAUSES[limit.cause] if limit else None
        points.append(
            SweepPoint(
                machine=machine_name(one),
                work=one.mode,
                batch_size=one.batch_size,
                examples_per_second=_rate(one),
                peak_memory=one.peak_memory_bytes,
                sweep_ended_because=f"{cause}: {limit.reason}" if limit else None,
                end=cause,
            )
        )
    return tuple(points)


def _rate(observed: Observation) -> Ends:
    assert observed.step is not None, "only what was timed has a point"
    low, mean, high = ends(observed.step)
    size = observed.batch_size
    return size / high, size / mean, size / max(low, mean / 1000)


def _ended_at(observed: Observation, limits: Iterable[BatchLimit]) -> BatchLimit | None:
    """The sweep whose largest size this is; variants have no place among plain trials."""
    machine = observed.machine
    place = (machine.hardware, machine.host, machine.device, observed.mode, observed.batch_size)
    for limit in limits:
        trial, host = limit.trial, limit.environment.fingerprint
        at = (limit.hardware, host, trial.provider, trial.mode, limit.largest_that_ran)
        if not trial.variant and trial.model == observed.workload.id and at == place:
            return limit
    return None
