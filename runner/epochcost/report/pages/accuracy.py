"""Make the page about accuracy: measured and published costs of training to an accuracy."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.analysis.accuracy import accuracy_trainings, published_accuracies
from epochcost.report.charts.learning import learning_curve
from epochcost.report.pages.page import Page, Report
from epochcost.statistics import group_by


def pages(report: Report) -> Iterator[Page]:
    """Yield the page about accuracy."""
    groups = group_by(
        accuracy_trainings(report.inputs),
        lambda training: f"{training.model.id}-{training.dataset.id}",
    )
    # Trainings of all epochs have the whole curves.
    shown = {
        name: [training for training in group if training.whole] or group
        for name, group in groups.items()
    }
    yield Page(
        uri="accuracy.md",
        title="What an accuracy costs",
        template="accuracy.md.jinja",
        description="Time and money of real trainings to an accuracy, with repeats.",
        context={
            "groups": groups,
            "hardware": report.catalogue.hardware,
            "published": published_accuracies(report.catalogue),
        },
        figures={
            f"time-{name}": learning_curve(group, identifier=f"learning-time-{name}")
            for name, group in shown.items()
        },
    )
