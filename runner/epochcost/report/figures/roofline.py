"""The figure of what a machine achieves of its peaks."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.roofline import RooflineChart, RoofPoint
from epochcost.report.escape import one_line
from epochcost.report.figures.parts import BATCH, MARK
from epochcost.report.roofline import Achieved
from epochcost.report.tables import Column, Table, Value


def roofline(found: Sequence[Achieved], *, identifier: str) -> Figure | None:
    """Every work of one device below its roof; None where nothing can be counted."""
    if not found:
        return None
    roof = found[0].roof
    points = tuple(
        RoofPoint(
            one_line(one.observed.subject.name),
            one.observed.mode,
            one.observed.kind,
            one.observed.batch_size,
            one.intensity,
            one.flops_per_second,
        )
        for one in found
    )
    return Figure(
        id=identifier,
        title=f"Achieved operations on the {'GPU' if roof.device == 'cuda' else 'CPU'}",
        description=(
            "The best batch size of each work: counted operations over the measured or published "
            "time. Bytes are those of parameters and optimizer alone, so points stand at or right "
            f"of their true place. {_roof_words(found)}"
        ),
        chart=RooflineChart(points, roof.peak_flops, roof.bytes_per_second),
        table=_table(found),
    )


def _roof_words(found: Sequence[Achieved]) -> str:
    roof = found[0].roof
    if roof.peak_flops is None:
        return "The machine's spec states no FP32 peak, so no roof is drawn."
    best = max(one.of_peak or 0 for one in found)
    slope = "" if roof.bytes_per_second else " Its memory bandwidth is not in the spec."
    return f"The best reaches {best:.0%} of the FP32 peak.{slope}"


def _table(found: Sequence[Achieved]) -> Table:
    columns = (
        Column("workload", "Workload"),
        Column("work", "Work"),
        BATCH,
        MARK,
        Column("achieved_gflops_per_second", "Achieved GFLOP/s", "number"),
        Column("share_of_peak", "Share of the peak", "number"),
        Column("least_gb_per_second", "Least GB/s", "number"),
        Column("least_share_of_bandwidth", "Least share of the bandwidth", "number"),
        Column("operations_per_byte", "Operations per byte, at most", "number"),
    )
    return Table(columns, tuple(_row(one) for one in found))


def _row(one: Achieved) -> tuple[Value, ...]:
    return (
        one_line(one.observed.subject.name),
        one.observed.mode,
        one.observed.batch_size,
        one.observed.kind,
        _digits(one.flops_per_second / 1e9),
        _digits(one.of_peak),
        _digits(one.least_bytes_per_second / 1e9),
        _digits(one.of_bandwidth),
        _digits(one.intensity),
    )


def _digits(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(f"{value:.3g}")
