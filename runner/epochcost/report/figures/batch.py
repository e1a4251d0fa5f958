"""The figures of batch size: measured time and cost per example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from epochcost.cost import Estimate
from epochcost.report.charts.batch_size import BatchPoint, BatchSize
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.palette import LIGHT_SERIES
from epochcost.report.escape import one_line
from epochcost.report.figures.parts import (
    BATCH,
    Colours,
    ends,
    interval_columns,
    interval_values,
    machine_name,
    symbol,
    used,
)
from epochcost.report.observations import Observation
from epochcost.report.rows import Row
from epochcost.report.tables import Column, Form, Table
from epochcost.report.wording import counted


def time_by_batch(
    observations: Sequence[Observation], *, identifier: str, colours: Colours
) -> Figure | None:
    """Measured time per example of one workload, by machine; None where nothing was measured."""
    return _time_by_batch(observations, machine_name, "machine", identifier, colours)


def time_by_batch_on_machine(
    observations: Sequence[Observation], *, identifier: str
) -> Figure | None:
    """The same of one machine, by workload: those of most batch sizes, a colour for each.

    A workload of one batch size has no line and stays in the page's tables.
    """
    timed = {(_workload(one), one.batch_size) for one in _timed(observations)}
    sizes = Counter(name for name, _ in sorted(timed))
    lines = [name for name, count in sizes.most_common(len(LIGHT_SERIES)) if count > 1]
    colours = tuple((name, at) for at, name in enumerate(sorted(lines)))
    drawn = [one for one in observations if _workload(one) in lines]
    left = len(sizes) - len(lines)
    note = f" {counted(left, 'other workload')}: in the tables below." if left else ""
    return _time_by_batch(drawn, _workload, "workload", identifier, colours, note)


def _timed(observations: Iterable[Observation]) -> list[Observation]:
    return [one for one in observations if one.kind == "measured" and one.step is not None]


def _workload(observed: Observation) -> str:
    return one_line(observed.subject.name)


def _time_by_batch(
    observations: Sequence[Observation],
    series: Callable[[Observation], str],
    by: str,
    identifier: str,
    colours: Colours,
    note: str = "",
) -> Figure | None:
    points = tuple(_time_point(series(one), one) for one in _timed(observations))
    if not points:
        return None
    drawn = used(colours, points)
    paired = by == "machine"
    chart = BatchSize("time per example", by, "seconds", "", points, drawn, paired=paired)
    return Figure(
        id=identifier,
        title="Batch size against time per example",
        description=(
            "Measured mean time of a batch over the number of its examples; bars are 95 % "
            f"intervals. Lower is faster.{note}"
        ),
        chart=chart,
        table=_table(points, by, "time_per_example", "s", "seconds", "Time per example"),
    )


def cost_by_batch(rows: Sequence[Row], *, identifier: str, colours: Colours) -> Figure | None:
    """Measured cost of a million examples against batch size, at each machine's cheapest plan."""
    found = _cheapest_measured(rows)
    if not found:
        return None
    currency = found[0][1].currency
    points = tuple(
        _money_point(row, cost, row.observed) for row, cost in found if cost.currency == currency
    )
    chart = BatchSize(
        "cost of a million examples",
        "machine",
        "money",
        symbol(currency),
        points,
        used(colours, points),
        paired=True,
    )
    return Figure(
        id=identifier,
        title="Batch size against cost of a million examples",
        description=(
            "The measured times at each machine's cheapest current plan, as a share of a running "
            "machine's bill; bars are 95 % intervals of the time, carried into money."
        ),
        chart=chart,
        table=_table(points, "machine", "cost_per_million", currency, "money", "Cost of a million"),
    )


def _cheapest_measured(rows: Iterable[Row]) -> list[tuple[Row, Estimate]]:
    """The cheapest plan of each measured machine, mode and batch size: rows come cheapest first."""
    best: dict[tuple[object, ...], tuple[Row, Estimate]] = {}
    for row in rows:
        cost = row.training.epoch if row.training else row.inference
        if row.current and row.observed.kind == "measured" and isinstance(cost, Estimate):
            key = (row.observed.machine, row.observed.mode, row.observed.batch_size)
            best.setdefault(key, (row, cost))
    return list(best.values())


def _money_point(row: Row, cost: Estimate, observed: Observation) -> BatchPoint:
    """The cost of a million examples: an epoch's is scaled by the examples that it covers."""
    time = observed.epoch or observed.million
    assert time is not None, "a measured observation has a time"
    assert observed.step is not None, "a measured observation has a step"
    examples = time.mean / observed.step.mean * observed.batch_size
    low, mean, high = (amount * 1_000_000 / examples for amount in (cost.low, cost.mean, cost.high))
    values = (float(low), float(mean), float(high))
    return BatchPoint(machine_name(row.observed), observed.mode, observed.batch_size, values)


def _time_point(series: str, observed: Observation) -> BatchPoint:
    assert observed.step is not None, "only what was timed has a point"
    low, mean, high = (value / observed.batch_size for value in ends(observed.step))
    return BatchPoint(series, observed.mode, observed.batch_size, (low, mean, high))


def _table(
    points: Sequence[BatchPoint], by: str, name: str, unit: str, form: Form, title: str
) -> Table:
    columns = (
        Column(by, by.capitalize()),
        Column("work", "Work"),
        BATCH,
        *interval_columns(name, unit, form, title),
    )
    rows = tuple(
        (point.series, point.mode, point.batch_size, *interval_values(point.value))
        for point in points
    )
    return Table(columns, rows)
