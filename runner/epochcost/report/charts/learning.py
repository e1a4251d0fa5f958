"""Chart learning curves: the held-out accuracy of real trainings against time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Annotated, Any

from epochcost.analysis.accuracy import AccuracyTraining
from epochcost.cost.estimate import Estimate
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, Shown, distinct
from epochcost.report.charts.figure import LEAST_POINTS, Figure, day_range
from epochcost.statistics import group_by
from epochcost.units import seconds

_MOST_POINTS = 60


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """The accuracy of a training's repeats at a step: lowest, mean and highest in ``measure``."""

    training: Annotated[str, Shown("Training")]
    step: Annotated[int, Shown("Step", "number")]
    time: Annotated[float, Shown("Time of steps", "seconds")]
    cost: Annotated[float | None, Shown("Cost of steps", "money")]
    measure: Annotated[Ends, Shown("Accuracy", "number")]


class LearningCurve(Figure):
    """Chart a line for each training, with a band for its repeats, on a log axis of time."""

    def layers(self, alt: Any) -> list[Any]:
        """Bands from the lowest to the highest repeat; lines and points of the repeats' mean."""
        base = self.marks(alt).encode(
            x=axes.log_axis(alt.X, self.data, "time", "time of steps"),
            color=theme.colour_by(alt, self.data, "training"),
        )
        axis = {"scale": alt.Scale(zero=False), "title": "held-out accuracy"}
        y, low = alt.Y("measure:Q", **axis), alt.Y("measure_low:Q", **axis)
        band = base.mark_area(fillOpacity=0.2).encode(low, alt.Y2("measure_high"))
        return [
            band,
            base.mark_line(strokeWidth=2).encode(y=y),
            self.data.with_tooltips(alt, base.mark_point(filled=True, size=25).encode(y=y)),
        ]


def learning_curve(
    trainings: Sequence[AccuracyTraining], *, identifier: str
) -> LearningCurve | None:
    """Chart learning curves of a model's trainings; None without three different points."""
    names = [f"batch {each.record.batch_size}, {each.machine.name}" for each in trainings]
    facts = [f"{each.record.aim}, {each.record.measured_at:%Y-%m-%d %H:%M}" for each in trainings]
    names = distinct(names, [", ".join(pair) for pair in zip(names, facts, strict=True)])
    rows = tuple(
        row
        for name, training in zip(names, trainings, strict=True)
        for row in _learning_points(name, training)
    )
    if len({(row.time, row.measure) for row in rows}) < LEAST_POINTS:
        return None
    days = [training.record.measured_at.date() for training in trainings]
    best = max(rows, key=lambda row: row.measure[1])
    currency = next((training.price.currency for training in trainings if training.price), "USD")
    return LearningCurve(
        id=identifier,
        title=(
            f"{best.training[:1].upper()}{best.training[1:]} reaches "
            f"{100 * best.measure[1]:.3g} % held-out accuracy in {seconds(best.time)}"
        ),
        description=(
            "Lines are means of all repeats, bands reach from the lowest to the highest repeat. "
            "Time and cost include the steps, but not the evaluations."
        ),
        data=ChartData(rows, currency),
        source=f"Measured by us {day_range(days)}",
    )


def _learning_points(name: str, training: AccuracyTraining) -> Iterator[LearningPoint]:
    every_point = chain.from_iterable(repeat.curve for repeat in training.record.repeats)
    evaluations = group_by(every_point, lambda point: point.step)
    common_steps = [
        step for step, points in evaluations.items() if len(points) == len(training.record.repeats)
    ]
    every = -(-len(common_steps) // _MOST_POINTS) or 1
    for step in sorted(common_steps)[::-every][::-1]:
        points = evaluations[step]
        values = [point.accuracy for point in points]
        seconds = fmean(point.seconds for point in points)
        if seconds > 0:
            cost = training.cost_of(seconds)
            yield LearningPoint(
                name,
                step,
                seconds,
                float(cost.mean) if isinstance(cost, Estimate) else None,
                (min(values), fmean(values), max(values)),
            )
