"""The figures of a sweep of batch sizes: examples per second, memory, and what ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from epochcost.analysis.observations import Observation
from epochcost.plan.sweep import Cause
from epochcost.report.charts.batch_size import BatchPoint, BatchSize, SweepEnd
from epochcost.report.charts.figure import (
    BATCH,
    MACHINE,
    Colours,
    Ends,
    Figure,
    ends,
    machine_name,
    used,
)
from epochcost.report.tables import Column, Table, Value
from epochcost.results.limits import BatchLimit

CAUSES: Mapping[Cause, str] = MappingProxyType(
    {
        "memory": "memory ends",
        "throughput": "throughput falls",
        "maximum": "no larger batch",
        "time": "step too long",
        "failure": "fails",
    }
)
_Of = Callable[[Observation], Ends | None]


@dataclass(frozen=True)
class _Axis:
    """What stands against the batch size: its words, its kind, and where an observation has it."""

    title: str
    quantity: Literal["rate", "bytes"]
    of: _Of


def rate_by_batch(
    observations: Sequence[Observation],
    limits: Sequence[BatchLimit],
    *,
    identifier: str,
    colours: Colours,
) -> Figure | None:
    """Examples per second of one workload; None where nothing was measured."""
    axis = _Axis("examples per second", "rate", _rate)
    description = (
        "Examples of a batch over its measured mean time; bars are 95 % intervals. Higher is "
        "faster. A ring is where a sweep of batch sizes ended."
    )
    return _figure(axis, description, observations, limits, identifier, colours)


def memory_by_batch(
    observations: Sequence[Observation],
    limits: Sequence[BatchLimit],
    *,
    identifier: str,
    colours: Colours,
) -> Figure | None:
    """The most memory that a trial held; None where none was read."""
    axis = _Axis("peak memory", "bytes", _held)
    description = (
        "The most that the measuring process held: of the host's memory, or of the GPU's where "
        "it computed. A ring is where a sweep of batch sizes ended."
    )
    return _figure(axis, description, observations, limits, identifier, colours)


def _figure(
    axis: _Axis,
    description: str,
    observations: Sequence[Observation],
    limits: Sequence[BatchLimit],
    identifier: str,
    colours: Colours,
) -> Figure | None:
    points, marks = _points(observations, axis.of), _marks(observations, limits, axis.of)
    if not points:
        return None
    drawn = used(colours, (point.series for point in points))
    return Figure(
        id=identifier,
        title=f"Batch size against {axis.title}",
        description=description,
        chart=BatchSize(
            axis.title, "machine", axis.quantity, "", points, drawn, marks, paired=True
        ),
        table=_table(observations, limits),
    )


def _rate(observed: Observation) -> Ends | None:
    if observed.step is None:
        return None
    low, mean, high = ends(observed.step)
    size = observed.batch_size
    return size / high, size / mean, size / max(low, mean / 1000)


def _held(observed: Observation) -> Ends | None:
    held = observed.peak_memory_bytes
    return None if held is None else (float(held), float(held), float(held))


def _measured(observations: Iterable[Observation], of: _Of) -> Iterator[tuple[Observation, Ends]]:
    for one in observations:
        if one.kind == "measured" and (value := of(one)) is not None:
            yield one, value


def _points(observations: Sequence[Observation], of: _Of) -> tuple[BatchPoint, ...]:
    return tuple(
        BatchPoint(machine_name(one), one.mode, one.batch_size, value)
        for one, value in _measured(observations, of)
    )


def _marks(
    observations: Sequence[Observation], limits: Sequence[BatchLimit], of: _Of
) -> tuple[SweepEnd, ...]:
    return tuple(
        SweepEnd(machine_name(one), one.mode, one.batch_size, value[1], CAUSES[limit.cause])
        for one, value in _measured(observations, of)
        if (limit := _ended_at(one, limits)) is not None
    )


def _ended_at(observed: Observation, limits: Iterable[BatchLimit]) -> BatchLimit | None:
    """The sweep whose largest size this is; variants have no place among plain trials."""
    machine = observed.machine
    place = (machine.hardware, machine.host, machine.device, observed.mode, observed.batch_size)
    for limit in limits:
        trial, host = limit.trial, limit.environment.fingerprint
        at = (limit.hardware, host, trial.provider, trial.mode, limit.largest_that_ran)
        if not trial.variant and trial.model == observed.subject.id and at == place:
            return limit
    return None


def _table(observations: Sequence[Observation], limits: Sequence[BatchLimit]) -> Table:
    columns = (
        MACHINE,
        Column("work", "Work"),
        BATCH,
        Column("examples_per_second", "Examples/s", "number"),
        Column("peak_memory_bytes", "Peak memory", "bytes"),
        Column("sweep_ended_because", "End of the sweep"),
    )
    return Table(columns, tuple(_row(one, limits) for one, _ in _measured(observations, _rate)))


def _row(observed: Observation, limits: Sequence[BatchLimit]) -> tuple[Value, ...]:
    limit, rate = _ended_at(observed, limits), _rate(observed)
    assert rate is not None, "a measured observation has a step"
    return (
        machine_name(observed),
        observed.mode,
        observed.batch_size,
        Decimal(f"{rate[1]:.4g}"),
        observed.peak_memory_bytes,
        None if limit is None else f"{CAUSES[limit.cause]}: {limit.reason}",
    )
