"""The figure of what a machine achieves of its peaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.roofline import RoofLine, RooflineChart, RoofPoint
from epochcost.report.escape import one_line
from epochcost.report.figures.parts import BATCH, MARK
from epochcost.report.roofline import Achieved, MeasuredRoof
from epochcost.report.tables import Column, Table, Value


def roofline(
    found: Sequence[Achieved], measured: Sequence[MeasuredRoof] = (), *, identifier: str
) -> Figure | None:
    """Every work of one device below its roofs; None where nothing can be counted.

    ``measured`` are those of all hosts of the machine.
    """
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
            f"of their true place. {_roof_words(found)} {_measured_words(found)}"
        ).rstrip(),
        chart=RooflineChart(points, tuple(_roofs(found, measured))),
        table=_table(found),
    )


def _roofs(found: Sequence[Achieved], measured: Sequence[MeasuredRoof]) -> Iterator[RoofLine]:
    roof = found[0].roof
    if roof.peak_flops is not None:
        yield RoofLine(
            "published: peak of the spec", roof.peak_flops, roof.bytes_per_second, measured=False
        )
    for one in measured:
        yield RoofLine(one.name, one.peak_flops, one.bytes_per_second, measured=True)


def _measured_words(found: Sequence[Achieved]) -> str:
    """How near the best comes to what was measured; nothing where nothing was."""
    shares = [one.of_measured_peak for one in found if one.of_measured_peak is not None]
    if not shares:
        return ""
    return (
        "Solid lines are what the host itself did at most, a product of matrices and a copy of "
        f"memory; the best reaches {max(shares):.0%} of that product."
    )


def _roof_words(found: Sequence[Achieved]) -> str:
    roof = found[0].roof
    if roof.peak_flops is None:
        return "The machine's spec states no FP32 peak, so no published roof is drawn."
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
        Column("share_of_measured_peak", "Share of the measured peak", "number"),
        Column("least_gb_per_second", "Least GB/s", "number"),
        Column("least_share_of_bandwidth", "Least share of the bandwidth", "number"),
        Column("least_share_of_measured_bandwidth", "Least share of the measured copy", "number"),
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
        _digits(one.of_measured_peak),
        _digits(one.least_bytes_per_second / 1e9),
        _digits(one.of_bandwidth),
        _digits(one.of_measured_bandwidth),
        _digits(one.intensity),
    )


def _digits(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(f"{value:.3g}")
