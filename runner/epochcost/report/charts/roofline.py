"""A roofline: achieved operations per second against operations per byte, below the roofs.

A roof that was measured is a solid line, a published one dashed; each says at its end which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.roofline import AchievedRate, MeasuredRoof
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import (
    BatchSize,
    ChartData,
    FigureKind,
    Shown,
    WorkloadName,
    WorkName,
)
from epochcost.report.charts.figure import Chart, Figure
from epochcost.report.escape import one_line

_WORKS = {"training": 0, "inference": 1}
_INK = "var(--ec-ink)"
_GFLOPS_LABEL = (
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' TFLOP/s'"
    " : datum.value >= 1 ? format(datum.value, '~g') + ' GFLOP/s'"
    " : format(datum.value * 1e3, '~g') + ' MFLOP/s'"
)


def _share(title: str) -> Shown:
    return Shown(title, "number", place="table", digits=3)


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """The best of one work; shares are None where there is nothing to be a share of."""

    workload: WorkloadName
    work: WorkName
    batch_size: BatchSize
    figure: FigureKind
    achieved_gflops_per_second: Annotated[float, Shown("Achieved GFLOP/s", "number", digits=3)]
    share_of_peak: Annotated[float | None, _share("Share of the peak")]
    share_of_measured_peak: Annotated[float | None, _share("Share of the measured peak")]
    least_gb_per_second: Annotated[float, _share("Least GB/s")]
    least_share_of_bandwidth: Annotated[float | None, _share("Least share of the bandwidth")]
    least_share_of_measured_bandwidth: Annotated[
        float | None, _share("Least share of the measured copy")
    ]
    operations_per_byte: Annotated[float, Shown("Operations per byte, at most", "number", digits=3)]


@dataclass(frozen=True, slots=True)
class RoofLine:
    """One roof; without ``bytes_per_second`` it is flat all along."""

    name: str
    peak_flops: float
    bytes_per_second: float | None
    measured: bool


@dataclass(frozen=True)
class RooflineChart(Chart[RoofPoint]):
    """Points by work (colour) and kind of figure (shape), and the roofs as lines."""

    roofs: tuple[RoofLine, ...]
    height = 340
    summary = "Achieved operations per second below the roof."

    def layers(self, alt: Any) -> list[Any]:
        """Each roof with its name, and the points."""
        span = axes.log_domain(self.data.values_of("operations_per_byte"))
        roofs = [(roof, _corners(roof, span)) for roof in self.roofs]
        heights = [corner[_HEIGHT] for _, corners in roofs for corner in corners]
        title = "operations per byte moved, at most"
        x = axes.log_axis(alt.X, self.data, "operations_per_byte", title)
        title = "achieved operations per second"
        y = axes.log_axis(alt.Y, self.data, _HEIGHT, title, also=heights, label=_GFLOPS_LABEL)
        points = (
            self.marks(alt)
            .mark_point(size=90, strokeWidth=2, filled=False)
            .encode(
                x=x,
                y=y,
                color=theme.colour_by(alt, self.data, "work", _WORKS),
                shape=theme.shape_by_kind(alt, self.data),
                tooltip=self.data.tooltips(alt),
            )
        )
        lines = [layer for roof, corners in roofs for layer in _roof_line(alt, roof, corners, x, y)]
        return [*lines, points]


_HEIGHT = "achieved_gflops_per_second"


def _corners(roof: RoofLine, span: tuple[float, float]) -> list[dict[str, float]]:
    """The corners of a roof from left to right."""
    peak, rate = roof.peak_flops, roof.bytes_per_second
    ridge = peak / rate if rate else span[0]
    if rate and span[0] < ridge < span[1]:
        corners = [span[0], ridge, span[1]]
    else:
        corners = [span[0], span[1]]
    heights = (min(peak, rate * at) if rate else peak for at in corners)
    return [
        {"operations_per_byte": at, _HEIGHT: flops / 1e9}
        for at, flops in zip(corners, heights, strict=True)
    ]


def _roof_line(
    alt: Any, roof: RoofLine, corners: list[dict[str, float]], x: Any, y: Any
) -> list[Any]:
    line = alt.Chart(alt.Data(values=corners)).encode(x=x, y=y)
    end = alt.Chart(alt.Data(values=corners[-1:])).encode(x=x, y=y)
    style = {"strokeWidth": 1.5} if roof.measured else {"strokeWidth": 2, "strokeDash": [6, 4]}
    return [
        line.mark_line(color=_INK, **style),
        end.mark_text(align="right", dx=-6, dy=-8, color=_INK, text=roof.name),
    ]


def roofline(
    found: Sequence[AchievedRate], measured: Sequence[MeasuredRoof] = (), *, identifier: str
) -> Figure | None:
    """Every work of one device below its roofs; None below two that can be counted.

    ``measured`` are those of all hosts of the machine.
    """
    if len(found) < 2:
        return None
    roof = found[0].roof
    return Figure(
        id=identifier,
        title=f"Achieved operations on the {'GPU' if roof.device == 'cuda' else 'CPU'}",
        description=(
            "The best batch size of each job: counted operations over the measured or published "
            "time. Bytes are those of parameters and optimizer alone, so points are at or right "
            f"of their true position. {_roof_words(found)} {_measured_words(found)}"
        ).rstrip(),
        chart=RooflineChart(ChartData(tuple(map(_point, found))), tuple(_roofs(found, measured))),
    )


def _point(one: AchievedRate) -> RoofPoint:
    return RoofPoint(
        workload=one_line(one.observed.workload.name),
        work=one.observed.mode,
        batch_size=one.observed.batch_size,
        figure=one.observed.kind,
        achieved_gflops_per_second=one.flops_per_second / 1e9,
        share_of_peak=one.of_peak,
        share_of_measured_peak=one.of_measured_peak,
        least_gb_per_second=one.least_bytes_per_second / 1e9,
        least_share_of_bandwidth=one.of_bandwidth,
        least_share_of_measured_bandwidth=one.of_measured_bandwidth,
        operations_per_byte=one.intensity,
    )


def _roofs(found: Sequence[AchievedRate], measured: Sequence[MeasuredRoof]) -> Iterator[RoofLine]:
    roof = found[0].roof
    if roof.peak_flops is not None:
        yield RoofLine(
            "published: peak of the spec", roof.peak_flops, roof.bytes_per_second, measured=False
        )
    for one in measured:
        yield RoofLine(one.name, one.peak_flops, one.bytes_per_second, measured=True)


def _measured_words(found: Sequence[AchievedRate]) -> str:
    """How near the best comes to what was measured; nothing where nothing was."""
    shares = [one.of_measured_peak for one in found if one.of_measured_peak is not None]
    if not shares:
        return ""
    return (
        "Solid lines are the host's measured peak, a product of matrices and a copy of memory; "
        f" the best reaches {max(shares):.0%} of that product."
    )


def _roof_words(found: Sequence[AchievedRate]) -> str:
    roof = found[0].roof
    if roof.peak_flops is None:
        return "The machine's spec states no FP32 peak, so no published roof is drawn."
    best = max(one.of_peak or 0 for one in found)
    slope = "" if roof.bytes_per_second else " Its memory bandwidth is not in the spec."
    return f"The best reaches {best:.0%} of the FP32 peak.{slope}"
