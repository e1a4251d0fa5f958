"""How many times as fast a work is on more vCPUs, beside the line of equal efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from epochcost.analysis.comparisons import Scaling
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, Shown, WorkName
from epochcost.report.charts.figure import Chart, Figure, ends
from epochcost.report.escape import one_line

# The factor between neighbouring series on the axis of vCPUs, so that no bar hides another.
_OFFSET = 1.012
_IDEAL = "linear"
_SOFT = "var(--ec-soft)"


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One count of vCPUs of one work, over its fewest; ``offset`` is where it is drawn."""

    work: WorkName
    vcpus: Annotated[int, Shown("vCPUs", "number")]
    speedup: Annotated[Ends, Shown("Speed-up", "number")]
    efficiency: Annotated[float, Shown("Efficiency", "number", place="table")]
    relative_cost: Annotated[float, Shown("Cost vs. the fewest vCPUs", "number", place="table")]
    offset: Annotated[float, Shown("vCPUs", "number", place="chart")]


@dataclass(frozen=True)
class ScalingChart(Chart[ScalingPoint]):
    """Lines with points and error bars over a logarithmic axis of vCPUs, and the ideal."""

    summary = "Speed-up vs. vCPUs."

    def layers(self, alt: Any) -> list[Any]:
        """The ideal line, then lines, bars and points."""
        counts = sorted(set(self.data.values_of("vcpus")))
        x = partial(
            axes.log_scaled,
            alt.X,
            domain=(counts[0] / 1.1, counts[-1] * 1.1),
            title="vCPUs that the trial was pinned to",
            ticks=counts,
        )
        y = self._speedups(alt, counts[-1] / counts[0])
        base = self.marks(alt).encode(
            x=x(field="offset"), color=theme.colour_by(alt, self.data, "work")
        )
        return [
            *_ideal(alt, counts, x(field="vcpus"), y),
            base.mark_line(strokeWidth=2).encode(y=y),
            *theme.error_bars(alt, base, "Y", "speedup"),
            base.mark_point(filled=True, size=60).encode(
                y=y,
                shape=theme.shape_by(alt, self.data, "work"),
                tooltip=self.data.tooltips(alt),
            ),
        ]

    def _speedups(self, alt: Any, ideal: float) -> Any:
        values = [*self.data.values_of("speedup"), 1.0, ideal]
        domain = min(values) / 1.1, max(values) * 1.15
        title = "times as fast as on the fewest"
        return axes.log_scaled(alt.Y, "speedup", domain, title, axes.log_ticks(domain))


def _ideal(alt: Any, counts: Sequence[int], x: Any, y: Any) -> list[Any]:
    """A dashed line from the fewest vCPUs to the most, named at its end."""
    few, many = counts[0], counts[-1]
    ends = [{"vcpus": few, "speedup": 1}, {"vcpus": many, "speedup": many / few}]
    line = alt.Chart(alt.Data(values=ends)).encode(x=x, y=y)
    end = alt.Chart(alt.Data(values=ends[1:])).encode(x=x, y=y)
    return [
        line.mark_line(strokeDash=[4, 4], strokeWidth=1.5, color=_SOFT),
        end.mark_text(align="right", dx=-8, dy=-8, fontSize=12, color=_SOFT, text=_IDEAL),
    ]


def speedup_by_vcpus(scalings: Sequence[Scaling], *, identifier: str) -> Figure | None:
    """The speed-up of each work over the fewest vCPUs; None where nothing was scaled."""
    machines = {found.machine for found in scalings}
    points = tuple(
        ScalingPoint(
            work=_name(found, len(machines) > 1),
            vcpus=point.vcpus,
            speedup=ends(point.speedup),
            efficiency=point.efficiency,
            relative_cost=point.relative_cost.mean,
            offset=point.vcpus * _OFFSET ** (at - (len(scalings) - 1) / 2),
        )
        for at, found in enumerate(scalings)
        for point in found.points
    )
    if not points:
        return None
    return Figure(
        id=identifier,
        title="Speed-up vs. vCPUs",
        description=(
            "Speed of a step relative to the fewest vCPUs; bars are 95 % intervals. "
            "Where a line stays below the dashed one, the larger instance costs more for each job "
            "at a price in proportion to vCPUs."
        ),
        chart=ScalingChart(ChartData(points)),
    )


def _name(found: Scaling, with_machine: bool) -> str:
    work = f"{found.mode}, batch {found.batch_size}"
    return f"{one_line(found.machine.name)}: {work}" if with_machine else work
