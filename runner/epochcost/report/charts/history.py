"""Step times over the days of measuring, each work over its own first, with what surely changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from epochcost.analysis.history import Series, SeriesPoint
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, Shown, WorkName
from epochcost.report.charts.figure import Chart, Figure, ends
from epochcost.report.escape import one_line

# More lines than there are colours are told apart by nobody.
_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One measurement; ``significant`` where the step from the one before is no chance."""

    work: WorkName
    measured_at: Annotated[str, Shown("SeriesPoint at", "time")]
    software: Annotated[str, Shown("Software", place="table")]
    step: Annotated[Decimal, Shown("One step", "seconds", place="table")]
    over_first: Annotated[Ends, Shown("Vs. the first", "number")]
    significant: Annotated[bool, Shown("Significant change")]


@dataclass(frozen=True)
class HistoryChart(Chart[HistoryPoint]):
    """Lines with error bars over time, a rule at 1, and rings where a step is significant."""

    summary = "Step time vs. the first, by day of measuring."
    long_names = True
    picks = "work"

    def layers(self, alt: Any) -> list[Any]:
        """The rule, lines, bars and points, and the rings."""
        x = alt.X(
            "measured_at:T",
            scale=alt.Scale(type="utc"),
            axis=alt.Axis(format="%Y-%m-%d %H:%M", tickCount=5),
            title="measured at (UTC)",
        )
        y = axes.log_axis(alt.Y, self.data, "over_first", "step time vs. the first", also=[1.0])
        data = self.marks(alt).encode(x=x)
        base = data.encode(color=theme.colour_by(alt, self.data, "work"))
        rings = data.transform_filter("datum.significant == 'yes'").mark_point(
            filled=False, size=260, strokeWidth=1.5, color="var(--ec-ink)"
        )
        at_one = alt.Chart(alt.Data(values=[{"over_first": 1}]))
        return [
            at_one.mark_rule(strokeDash=[4, 4], color="var(--ec-soft)").encode(y=y),
            base.mark_line(strokeWidth=2).encode(y=y),
            *theme.error_bars(alt, base, "Y", "over_first"),
            base.mark_point(filled=True, size=60).encode(
                y=y,
                shape=theme.shape_by(alt, self.data, "work"),
                tooltip=self.data.tooltips(alt),
            ),
            # A layer without data has no extent, of which Vega warns.
            *([rings.encode(y=y)] if "yes" in self.data.values_of("significant") else ()),
        ]


def step_history(series: Sequence[Series], *, identifier: str) -> Figure | None:
    """Step times over the first of each series; None where nothing was measured twice."""
    again = [one for one in series if len(one.runs) > 1]
    drawn = sorted(again, key=lambda one: -one.farthest)[:_MOST_LINES]
    if not drawn:
        return None
    left = len(again) - len(drawn)
    return Figure(
        id=identifier,
        title="Step time vs. first measurement",
        description=(
            "Above 1 is slower than at first; bars are 95 % intervals. A ring marks a change that "
            "exceeds 5 % and the noise, with both sides measured in several rounds."
            + (f" Top {_MOST_LINES} of {len(again)}, biggest change first." * bool(left))
        ),
        chart=HistoryChart(
            ChartData(tuple(_point(one, point) for one in drawn for point in one.points))
        ),
    )


def _point(series: Series, point: SeriesPoint) -> HistoryPoint:
    return HistoryPoint(
        one_line(series.name),
        point.at.isoformat(timespec="seconds"),
        one_line(point.software),
        point.step.mean,
        ends(point.relative),
        point in series.steps,
    )
