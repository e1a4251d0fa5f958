"""Figures by batch size: times, memory, and the marked end of a sweep with its reason."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Observation, observe
from epochcost.plan.sweep import Cause
from epochcost.report.charts.batch_size import by_batch_size
from epochcost.results.limits import LIMIT_VERSION, BatchLimit, FailedSize
from report_project import make_result


def limit(largest: int, cause: Cause = "memory", **variant: int) -> BatchLimit:
    """The end of a sweep of the project's trainings at a batch size."""
    result = make_result(**variant)
    return BatchLimit(
        limit_version=LIMIT_VERSION,
        sweep_id=result.trial.model_copy(update={"batch_size": 0}).id,
        trial=result.trial,
        hardware="local",
        ended_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
        cause=cause,
        reason=f"batch {2 * largest} ran out of memory",
        sizes=(largest,),
        failed=(FailedSize(batch_size=2 * largest, words="bad_alloc", of_memory=True),),
        environment=result.environment,
    )


def trainings(inputs: Inputs) -> list[Observation]:
    """The measured trainings, with memory at one batch size only."""
    rows = [row for row in observe(inputs) if row.kind == "measured" and row.mode == "training"]
    return [replace(rows[0], peak_memory_bytes=2**28), *rows[1:]]


def test_a_sweep_s_end_stands_at_its_last_size(inputs: Inputs) -> None:
    """The chart marks it, and the table has the reason; times are those of a batch."""
    observed = trainings(inputs)
    figure = by_batch_size("time_per_example", observed, [limit(128)], identifier="r")
    assert figure is not None
    points = figure.chart.data.rows
    assert [(point.batch_size, point.end) for point in points if point.end] == [
        (128, "out of memory")
    ]
    low, mean, high = next(point.time_per_example for point in points if point.batch_size == 128)
    assert low < mean < high
    assert round(mean * 128, 5) == 0.03075
    reasons = {row[3]: row[-1] for row in figure.table.texts}
    assert reasons == {"32": "—", "128": "out of memory: batch 256 ran out of memory"}
    assert "out of memory" in str(figure.chart.spec())


def test_memory_is_drawn_where_it_was_read(inputs: Inputs) -> None:
    """A trial without a reading has no point; without any there is no figure."""
    observed = trainings(inputs)
    figure = by_batch_size("peak_memory", observed, [], identifier="m")
    assert figure is not None
    assert [point.peak_memory for point in figure.chart.data.rows] == [2**28]
    assert "256.0 MiB" in {row[-2] for row in figure.table.texts}
    assert by_batch_size("peak_memory", observed[1:], [], identifier="m") is None
