"""Time per example and peak memory against batch size, a line for each series and job.

A ring marks the end of a sweep of batch sizes, labelled with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from epochcost.analysis.observations import Observation
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
from epochcost.report.charts.figure import Chart, Figure, ends, machine_name
from epochcost.report.charts.theme import LIGHT_SERIES
from epochcost.report.escape import one_line
from epochcost.results.limits import BatchLimit
from epochcost.units import count_words

Quantity = Literal["time_per_example", "peak_memory"]
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
_TITLES: Mapping[Quantity, str] = {
    "time_per_example": "time per example",
    "peak_memory": "peak memory",
}
_TIMES = "Measured mean time of a batch, per example; bars are 95 % intervals. Lower is faster."
_DESCRIPTIONS: Mapping[Quantity, str] = {
    "time_per_example": _TIMES,
    "peak_memory": "Peak memory of the measuring process, on the host or, for work on a GPU, on "
    "the GPU.",
}


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """A measured batch size; ``end`` is the short reason why a sweep ended there."""

    machine: MachineName
    workload: WorkloadName
    work: WorkName
    batch_size: BatchSize
    time_per_example: Annotated[Ends, Shown("Time per example", "seconds")]
    peak_memory: Annotated[int | None, Shown("Peak memory", "bytes")]
    sweep_ended_because: Annotated[str | None, Shown("End of the sweep")]
    end: Annotated[str | None, Shown("End", place="chart")]


@dataclass(frozen=True)
class AgainstBatchSize(Chart[BatchPoint]):
    """A quantity over the batch sizes, a colour for each value of the field ``by``."""

    by: Literal["machine", "workload"]
    quantity: Quantity
    height = 300

    @property
    def summary(self) -> str:
        """The subject of the chart."""
        return f"{_TITLES[self.quantity].capitalize()} vs. batch size."

    def layers(self, alt: Any) -> list[Any]:
        """Lines with points and error bars over a logarithmic axis of measured batch sizes."""
        works = sorted(set(self.data.values_of("work")), reverse=True)
        dash = {"domain": works, "range": [_DASHES[work] for work in works]}
        x = self._batch_sizes(alt)
        y = axes.log_axis(alt.Y, self.data, self.quantity, _TITLES[self.quantity])
        plain = self.marks(alt)
        base = plain.encode(x=x, color=theme.colour_by(alt, self.data, self.by))
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
    """A ring around the last point of each sweep, labelled with the reason."""
    # Vega warns of layers without data, which have no extent.
    if not any("end" in row for row in plain.data["values"]):
        return []
    base = plain.encode(x=x, y=y).transform_filter("isValid(datum.end)")
    ring = base.mark_point(filled=False, size=190, strokeWidth=1.5, color=_INK)
    text = base.mark_text(align="right", dx=-9, dy=-11, color=_INK)
    return [ring.encode(tooltip=tooltip), text.encode(text=alt.Text("end:N"))]


def by_batch_size(
    quantity: Quantity,
    observations: Sequence[Observation],
    limits: Sequence[BatchLimit],
    *,
    identifier: str,
) -> Figure | None:
    """A quantity of one workload's trials by machine; None if none was measured."""
    description = f"{_DESCRIPTIONS[quantity]} A ring marks where the sweep of batch sizes ended."
    return _figure(_points(observations, limits), quantity, description, identifier, by="machine")


def time_by_batch_on_machine(
    observations: Sequence[Observation], *, identifier: str
) -> Figure | None:
    """The times of one machine for the workloads with most batch sizes, a colour for each.

    A workload with one batch size has no line and stays in the page's tables.
    """
    points = _points(observations, ())
    sizes = Counter(name for name, _ in {(point.workload, point.batch_size) for point in points})
    ranked = sorted(sizes, key=lambda name: (-sizes[name], name))[: len(LIGHT_SERIES)]
    lines = [name for name in ranked if sizes[name] > 1]
    drawn = sorted(
        (point for point in points if point.workload in lines), key=lambda point: point.workload
    )
    unlisted = len(sizes) - len(lines)
    note = f" {count_words(unlisted, 'other workload')}: in the tables below." if unlisted else ""
    return _figure(drawn, "time_per_example", _TIMES + note, identifier, by="workload")


def _figure(
    points: Iterable[BatchPoint],
    quantity: Quantity,
    description: str,
    identifier: str,
    *,
    by: Literal["machine", "workload"],
) -> Figure | None:
    drawn = tuple(point for point in points if getattr(point, quantity) is not None)
    if not drawn:
        return None
    chart = AgainstBatchSize(ChartData(drawn), by, quantity, paired=by == "machine")
    return Figure(identifier, chart.summary.rstrip("."), description, chart)


def _points(
    observations: Iterable[Observation], limits: Sequence[BatchLimit]
) -> tuple[BatchPoint, ...]:
    points = []
    for observed in observations:
        if observed.kind != "measured" or observed.step is None:
            continue
        limit = _ended_at(observed, limits)
        cause = _CAUSES[limit.cause] if limit else None
        low, mean, high = (end / observed.batch_size for end in ends(observed.step))
        points.append(
            BatchPoint(
                machine=machine_name(observed),
                workload=one_line(observed.workload.name),
                work=observed.mode,
                batch_size=observed.batch_size,
                time_per_example=(low, mean, high),
                peak_memory=observed.peak_memory_bytes,
                sweep_ended_because=f"{cause}: {limit.reason}" if limit else None,
                end=cause,
            )
        )
    return tuple(points)


def _ended_at(observed: Observation, limits: Iterable[BatchLimit]) -> BatchLimit | None:
    """The sweep whose largest size this trial has; None for variants and other sizes."""
    machine = observed.machine
    place = (machine.hardware, machine.host, machine.device, observed.mode, observed.batch_size)
    for limit in limits:
        trial, host = limit.trial, limit.environment.fingerprint
        at = (limit.hardware, host, trial.provider, trial.mode, limit.largest_that_ran)
        if not trial.variant and trial.model == observed.workload.id and at == place:
            return limit
    return None
