"""The figure of CPUs against a GPU: relative time and relative cost of one job."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.relative import Ratio, RelativeChart
from epochcost.report.figures.parts import BATCH, MACHINE, MARK, PLAN, machine_name
from epochcost.report.relative import OnCpu, Relative
from epochcost.report.tables import Column, Table, Value
from epochcost.statistics import Bounded


def cpu_against_gpu_figure(found: Relative | None, *, identifier: str, job: str) -> Figure | None:
    """Time and cost over the GPU's, by machine; None where there is nothing to compare."""
    if found is None:
        return None
    gpu = machine_name(found.gpu.observed)
    ratios = tuple(ratio for one in found.cpus for ratio in _ratios(one))
    return Figure(
        id=identifier,
        title=f"One {job} on CPUs, over that on {gpu}",
        description=(
            f"Both at batch size {found.gpu.observed.batch_size}, each machine at its cheapest "
            f"current plan; the GPU is that with the cheapest figure ({found.gpu.mark}). Left of "
            "the line at 1 a CPU is cheaper, or faster."
        ),
        chart=RelativeChart("times the GPU's", ratios),
        table=_table(found),
    )


def _ratios(one: OnCpu) -> Iterator[Ratio]:
    name, mark = machine_name(one.row.observed), one.row.mark
    yield Ratio(name, "cost", mark, _ends(one.cost))
    yield Ratio(name, "time", mark, _ends(one.time))


def _ends(value: Bounded) -> tuple[float, float, float]:
    return value.low, value.mean, value.high


def _table(found: Relative) -> Table:
    columns = (
        MACHINE,
        PLAN,
        MARK,
        BATCH,
        Column("times_cost", "Times the GPU's cost", "number"),
        Column("times_time", "Times the GPU's time", "number"),
        Column("gpu", "GPU"),
        Column("gpu_price_plan", "GPU's price plan"),
    )
    return Table(columns, tuple(_row(one, found) for one in found.cpus))


def _row(one: OnCpu, found: Relative) -> tuple[Value, ...]:
    return (
        machine_name(one.row.observed),
        one.row.plan,
        one.row.mark,
        one.row.observed.batch_size,
        Decimal(f"{one.cost.mean:.4g}"),
        Decimal(f"{one.time.mean:.4g}"),
        machine_name(found.gpu.observed),
        found.gpu.plan,
    )
