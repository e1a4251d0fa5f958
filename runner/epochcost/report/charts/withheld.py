"""Chart the ratio predicted / true time on accelerators whose times the predictor did not use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.prediction_trust import Shown as WithheldRow
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, Shown
from epochcost.report.charts.figure import LEAST_POINTS, Figure
from epochcost.report.escape import one_line
from epochcost.units import render_count


@dataclass(frozen=True, slots=True)
class WithheldTime:
    """The true and predicted time of a workload on an accelerator withheld from the predictor."""

    accelerator: Annotated[str, Shown("Accelerator")]
    count: Annotated[int, Shown("Accelerators", "number")]
    model: Annotated[str, Shown("Model")]
    mode: Annotated[str, Shown("Mode")]
    source: Annotated[str, Shown("Source")]
    true: Annotated[float, Shown("True time", "seconds")]
    predicted: Annotated[Ends, Shown("Predicted", "seconds", place="table")]
    over_true: Annotated[Ends, Shown("Predicted over true", "number", bounds=False)]
    interval: Annotated[str, Shown("90 % interval")]


# Predictions are rings; a miss is crossed.
_SHAPES = {
    "domain": ["contains the truth", "misses the truth"],
    "range": [theme.SHAPES["predicted"], theme.CROSS],
}


class WithheldChart(Figure):
    """Chart the ratio predicted / true time, with error bars, against the true time."""

    def layers(self, alt: Any) -> list[Any]:
        """The line of exact predictions, then error bars and marks."""
        x = axes.log_axis(alt.X, self.data, "true", "true time of an example")
        y = axes.log_axis(alt.Y, self.data, "over_true", "predicted over true time", also=[1.0])
        base = self.marks(alt).encode(x=x, color=theme.colour_by(alt, self.data, "interval"))
        return [
            theme.line_at_one(alt, "over_true").encode(y=y),
            theme.error_bars(alt, base, "Y", "over_true"),
            self.data.with_tooltips(
                alt,
                base.mark_point(filled=True, size=60).encode(
                    y=y, shape=alt.Shape("interval:N", scale=_SHAPES, title="90 % interval")
                ),
            ),
        ]


def predicted_against_true(rows: Sequence[WithheldRow], *, identifier: str) -> WithheldChart | None:
    """Chart predictions that used no rate of the accelerator; None for fewer than three rows."""
    if len(rows) < LEAST_POINTS:
        return None
    points = sorted((_row(row) for row in rows), key=lambda row: row.interval)
    hits = sum(row.low <= row.seconds <= row.high for row in rows)
    sources = len({row.source for row in rows})
    return WithheldChart(
        id=identifier,
        title=f"{hits} of {len(rows)} intervals contain the true time",
        description=(
            "On the dashed line a prediction is exact; bars are 90 % intervals. Each prediction is "
            "made without any rate of its accelerator. The chart shows some rates of each "
            "accelerator, evenly chosen from its fastest to its slowest."
        ),
        data=ChartData(tuple(points)),
        source=f"True times of {render_count(sources, 'published source')}, predicted by us",
    )


def _row(row: WithheldRow) -> WithheldTime:
    return WithheldTime(
        accelerator=one_line(row.accelerator),
        count=row.count,
        model=one_line(row.model),
        mode=row.mode,
        source=one_line(row.source),
        true=row.seconds,
        predicted=(row.low, row.predicted, row.high),
        over_true=(row.low / row.seconds, row.predicted / row.seconds, row.high / row.seconds),
        interval="contains the truth" if row.low <= row.seconds <= row.high else "misses the truth",
    )
