"""Chart the time per example against batch size, with a line for each machine and job.

The last point of a sweep of batch sizes is labelled with the reason why the sweep ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

from epochcost.analysis.observations import Observation
from epochcost.plan.sweep import Cause
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import BatchSize, ChartData, Ends, MachineName, Shown, WorkName
from epochcost.report.charts.figure import (
    LEAST_POINTS,
    Chart,
    Figure,
    day_range,
    ends,
    machine_name,
)
from epochcost.results.sidecars import BatchLimit
from epochcost.units import seconds

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


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """The time at a batch size; if a sweep ended there, ``end`` is the reason in a few words."""

    machine: MachineName
    work: WorkName
    batch_size: BatchSize
    time_per_example: Annotated[Ends, Shown("Time per example", "seconds")]
    sweep_ended_because: Annotated[str | None, Shown("End of the sweep")]
    end: Annotated[str | None, Shown("End", place="chart")]


@dataclass(frozen=True)
class TimeByBatchSize(Chart[BatchPoint]):
    """Chart the time per example over the batch size: lines, in a colour for each machine."""

    height = 300
    summary = "Time per example vs. batch size."

    def layers(self, alt: Any) -> list[Any]:
        """Lines with points and error bars over a logarithmic axis of the measured batch sizes."""
        works = sorted(set(self.data.values_of("work")), reverse=True)
        dash = {"domain": works, "range": [_DASHES[work] for work in works]}
        sizes = sorted(set(self.data.values_of("batch_size")))
        domain, title = axes.log_domain(sizes), "batch size in examples"
        label = "format(datum.value, ',')"
        x = axes.log_with_ticks(alt.X, "batch_size", domain, title, sizes, label)
        y = axes.log_axis(alt.Y, self.data, "time_per_example", "time per example")
        plain = self.marks(alt)
        base = plain.encode(x=x, color=theme.colour_by(alt, self.data, "machine"))
        points = base.mark_point(filled=True, size=55, opacity=1).encode(y=y)
        # Vega warns of layers without data, which have no extent.
        labelled = any("end" in row for row in self.data.values)
        names = plain.encode(x=x, y=y, text="end:N").transform_filter("isValid(datum.end)")
        text = names.mark_text(align="right", dx=-9, dy=-11, color="var(--ec-ink)")
        return [
            base.mark_line(strokeWidth=2).encode(
                y=y, strokeDash=alt.StrokeDash("work:N", scale=dash, title="job")
            ),
            *theme.error_bars(alt, base, "Y", "time_per_example"),
            self.data.with_tooltips(alt, points),
            *([text] if labelled else []),
        ]


def time_by_batch_size(
    observations: Sequence[Observation], limits: Sequence[BatchLimit], *, identifier: str
) -> Figure | None:
    """Chart a workload's measured times by machine; None for fewer than three batch sizes."""
    points = _points(observations, limits)
    if len({point.batch_size for point in points}) < LEAST_POINTS:
        return None
    best = min(points, key=lambda point: point.time_per_example[1])
    return Figure(
        id=identifier,
        title=(
            f"Fastest at batch {best.batch_size:,} in {best.work}: "
            f"{seconds(best.time_per_example[1])} per example on {best.machine}"
        ),
        description=(
            "Measured mean time of a batch, per example; bars are 95 % intervals. A label says "
            "why the sweep of batch sizes ended."
        ),
        chart=TimeByBatchSize(ChartData(points)),
        source=f"Measured by us {day_range(trial.date for trial in _measured(observations))}",
    )


def _measured(observations: Iterable[Observation]) -> Iterator[Observation]:
    return (trial for trial in observations if trial.kind == "measured" and trial.step)


def _points(
    observations: Iterable[Observation], limits: Sequence[BatchLimit]
) -> tuple[BatchPoint, ...]:
    points = []
    for observed in _measured(observations):
        assert observed.step is not None, "measured trials have a time"
        limit = _ended_at(observed, limits)
        cause = _CAUSES[limit.cause] if limit else None
        low, mean, high = (end / observed.batch_size for end in ends(observed.step))
        points.append(
            BatchPoint(
                machine=machine_name(observed),
                work=observed.mode,
                batch_size=observed.batch_size,
                time_per_example=(low, mean, high),
                sweep_ended_because=f"{cause}: {limit.reason}" if limit else None,
                end=cause,
            )
        )
    return tuple(points)


def _ended_at(observed: Observation, limits: Iterable[BatchLimit]) -> BatchLimit | None:
    """The sweep that ended after this trial; None for other batch sizes and for variants."""
    machine = observed.machine
    place = (machine.hardware, machine.host, machine.device, observed.mode, observed.batch_size)
    for limit in limits:
        trial, host = limit.trial, limit.environment.fingerprint
        at = (limit.hardware, host, trial.provider, trial.mode, limit.largest_that_ran)
        if not trial.variant and trial.model == observed.workload.id and at == place:
            return limit
    return None
