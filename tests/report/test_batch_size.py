"""Times by batch size, and the marked end of a sweep with its reason."""

from __future__ import annotations

import datetime as dt

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import observe
from epochcost.plan.sweep import Cause
from epochcost.report.charts.batch_size import time_by_batch_size
from epochcost.results.sidecars import LIMIT_VERSION, BatchLimit, FailedSize
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


def test_a_sweep_s_end_stands_at_its_last_size(inputs: Inputs) -> None:
    """The chart marks it, and the table has the reason; times are those of a batch."""
    observed = observe(inputs)
    figure = time_by_batch_size(observed, [limit(128)], identifier="r")
    assert figure is not None
    points = figure.chart.data.rows
    assert [(point.batch_size, point.end) for point in points if point.end] == [
        (128, "out of memory")
    ]
    low, mean, high = next(point.time_per_example for point in points if point.batch_size == 128)
    assert low < mean < high
    assert round(mean * 128, 5) == 0.03075
    reasons = {row[2]: row[-1] for row in figure.table.texts}
    assert reasons["128"] == "out of memory: batch 256 ran out of memory"
    assert {reasons["1"], reasons["32"]} == {"—"}
    assert "out of memory" in str(figure.chart.spec())


def test_two_batch_sizes_are_no_chart(inputs: Inputs) -> None:
    """Fewer than three points that differ stay in the tables."""
    trainings = [trial for trial in observe(inputs) if trial.mode == "training"]
    assert time_by_batch_size(trainings, [], identifier="r") is None
