"""Whole epochs at the command line: the options that ask for them, and what they showed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from epochcost.cli.tables import print_table
from epochcost.results.epochs import MOST_EPOCH_SECONDS

if TYPE_CHECKING:
    from epochcost.execute.epochs import EpochsAsked
    from epochcost.results.epochs import WholeEpochs
    from epochcost.results.records import Result

ValidateEpochs = Annotated[
    int,
    typer.Option(
        "--validate-epochs",
        min=0,
        max=100,
        help="After each training run so many whole epochs, and tell how well steps foretold them.",
    ),
]
EpochLimit = Annotated[
    float,
    typer.Option(
        "--epoch-limit", min=1, help="Leave out epochs that would take more seconds than this."
    ),
]


def epochs_asked(count: int, limit: float = MOST_EPOCH_SECONDS) -> EpochsAsked | None:
    """What the options ask for; None where they ask for no epoch."""
    from epochcost.execute.epochs import EpochsAsked

    return EpochsAsked(count, limit) if count else None


def show_epochs(results: Iterable[Result]) -> None:
    """A table of the epochs that were run, and why others were not; nothing where none were."""
    found = [(one, epochs) for one in results if (epochs := one.measurement.epochs) is not None]
    run = [(one, epochs) for one, epochs in found if epochs.epochs]
    if run:
        print_table(
            (
                "whole epochs",
                "steps",
                "epoch",
                "foretold",
                "error",
                "this process",
                "waits for data",
            ),
            [_row(one, epochs) for one, epochs in run],
        )
    for one, epochs in found:
        if epochs.left_out is not None:
            typer.echo(f"no epoch of {one.trial.title}: {epochs.left_out}", err=True)


def _row(result: Result, epochs: WholeEpochs) -> tuple[str, ...]:
    from epochcost.results.summary import summary_of
    from epochcost.units import seconds

    step = summary_of(result.measurement).mean
    apart = epochs.process_difference(step)
    return (
        f"{result.trial.title}, {len(epochs.epochs)}",
        str(epochs.steps),
        seconds(epochs.mean_seconds),
        seconds(epochs.foretold_seconds(step)),
        f"{epochs.prediction_error(step):+.1%}",
        "-" if apart is None else f"{apart:+.1%}",
        f"{epochs.waiting_share:.1%}",
    )
