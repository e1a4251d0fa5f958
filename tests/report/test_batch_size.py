"""The figures of a sweep: rates, memory, and a mark with the reason where it ended."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Observation, observe
from epochcost.plan.sweep import Cause
from epochcost.report.charts.batch_size import sweep_by_batch
from epochcost.results.limits import LIMIT_VERSION, BatchLimit, FailedSize
from report_project import make_result


def limit(largest: int, cause: Cause = "memory", **variant: int) -> BatchLimit:
    """The end of a sweep of the project's trainings at a size."""
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
    """The measured trainings, with memory that was read at one size only."""
    found = [one for one in observe(inputs) if one.kind == "measured" and one.mode == "training"]
    return [replace(found[0], peak_memory_bytes=2**28), *found[1:]]


def test_a_sweep_s_end_stands_at_its_last_size(inputs: Inputs) -> None:
    """The chart rings it, and the table says why; rates are examples over the mean time."""
    observed = trainings(inputs)
    figure = sweep_by_batch(
        "examples_per_second", observed, [limit(128)], identifier="r", colours=()
    )
    assert figure is not None
    points = figure.chart.data.rows
    assert [(one.batch_size, one.end) for one in points if one.end] == [(128, "out of memory")]
    rates = {point.batch_size: point.examples_per_second for point in points}
    assert round(rates[128][1]) == round(128 / 0.03075)
    assert rates[128][0] < rates[128][1] < rates[128][2]
    words = {row[2]: row[-1] for row in figure.table.shown}
    assert words == {"32": "—", "128": "out of memory: batch 256 ran out of memory"}
    assert "out of memory" in str(figure.chart.spec())


def test_a_variant_s_end_marks_no_plain_trial(inputs: Inputs) -> None:
    """Nor does that of a size which is not there."""
    for other in (limit(128, vcpus=1), limit(64)):
        figure = sweep_by_batch(
            "examples_per_second", trainings(inputs), [other], identifier="r", colours=()
        )
        assert figure is not None
        assert not any(point.end for point in figure.chart.data.rows)


def test_memory_is_drawn_where_it_was_read(inputs: Inputs) -> None:
    """A trial without a reading has no point, and none at all make no figure."""
    observed = trainings(inputs)
    figure = sweep_by_batch("peak_memory", observed, [], identifier="m", colours=())
    assert figure is not None
    assert [point.peak_memory for point in figure.chart.data.rows] == [2**28]
    assert "256.0 MiB" in {row[4] for row in figure.table.shown}
    assert sweep_by_batch("peak_memory", observed[1:], [], identifier="m", colours=()) is None
