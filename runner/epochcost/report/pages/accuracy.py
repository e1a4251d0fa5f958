"""Make the page about accuracy: measured and published costs of training to an accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from epochcost.analysis.accuracy import AccuracyTraining, accuracy_trainings, published_accuracies
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.learning import learning_curve
from epochcost.report.pages.page import Page, Report
from epochcost.results.trainings import Spread
from epochcost.units import money, rounded, seconds

URI = "accuracy.md"


@dataclass(frozen=True)
class TrainingRow:
    """A training with its figures formatted as text."""

    training: AccuracyTraining
    aim: str
    reached: str
    time: str
    cost: str
    steps: str
    accuracy: str


def pages(report: Report) -> Iterator[Page]:
    """Yield the page about accuracy."""
    trainings = accuracy_trainings(report.inputs)
    groups = [list(group) for _, group in groupby(trainings, key=_id)]
    models = [(group[0], [_row(training) for training in group]) for group in groups]
    yield Page(
        uri=URI,
        title="What an accuracy costs",
        template="accuracy.md.jinja",
        description="Time and money of real trainings to an accuracy, with repeats.",
        context={
            "models": [
                (_id(first), first, _main_result_sentence(rows), rows) for first, rows in models
            ],
            "hardware": report.catalogue.hardware,
            "published": published_accuracies(report.catalogue),
        },
        figures={f"time-{_id(group[0])}": _learning_curve_figure(group) for group in groups},
    )


def _learning_curve_figure(trainings: Sequence[AccuracyTraining]) -> Figure | None:
    shown = [training for training in trainings if training.whole] or trainings
    return learning_curve(shown, identifier=f"learning-time-{_id(trainings[0])}")


def _id(training: AccuracyTraining) -> str:
    return f"{training.model.id}-{training.dataset.id}"


def _main_result_sentence(rows: Sequence[TrainingRow]) -> str:
    row = next((row for row in rows if not row.training.whole), rows[0])
    price, machine = row.training.price, row.training.machine
    assumed = " at an assumed price" if price and price.assumed else ""
    cost = f" and {row.cost}{assumed}" if row.cost else ""
    return f"{row.aim.capitalize()}: {row.time}{cost} on {machine.name}, {row.reached}."


def _row(training: AccuracyTraining) -> TrainingRow:
    repeats = training.record.repeats
    currency = training.price.currency if training.price else "USD"
    reached = sum(each.ending == "reached" for each in repeats)
    return TrainingRow(
        training,
        training.record.aim.replace(">=", " ≥ ").replace("<=", " ≤ "),
        f"{len(repeats)} repeats"
        if training.whole
        else f"{reached} of {len(repeats)} repeats reached it",
        seconds(training.seconds.mean) + _relative_half_width(training.seconds),
        money(Decimal(repr(training.cost.mean)), currency) + _relative_half_width(training.cost)
        if training.cost
        else "",
        _spread(training.steps, lambda value: f"{value:,.0f}"),
        _spread(training.accuracy, lambda value: f"{100 * value:.2f}") + " %",
    )


def _spread(spread: Spread, format_value: Callable[[float], str]) -> str:
    half = f" ± {format_value(spread.half_width)}" if spread.half_width else ""
    return f"{format_value(spread.mean)}{half}"


def _relative_half_width(spread: Spread) -> str:
    return f" ± {rounded(100 * spread.half_width / spread.mean, 2)} %" if spread.half_width else ""
