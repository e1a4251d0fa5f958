"""Batch sizes on the command line: the option that names one, and how sweeps ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from epochcost.errors import InputError
from epochcost.specs.study import MOST_BATCH

if TYPE_CHECKING:
    from epochcost.plan.sweep import Sweep
    from epochcost.results.limits import BatchLimit

BatchSize = Annotated[
    str | None,
    typer.Option(
        "--batch-size",
        metavar="auto|N",
        help="Instead of the studies' sizes: this one, or a sweep until memory ends.",
    ),
]


def batch_size_of(text: str | None) -> int | Literal["auto"] | None:
    """What ``--batch-size`` asks for; raises InputError where it is neither."""
    if text is None:
        return None
    if text == "auto":
        return "auto"
    if not (text.isdecimal() and len(text) < 9 and 1 <= int(text) <= MOST_BATCH):
        raise InputError(
            f"--batch-size: demanded auto, or a size from 1 to {MOST_BATCH}; got {text!r:.40}"
        )
    return int(text)


def show_limits(results: Path, hardware: str, sweeps: Sequence[Sweep]) -> None:
    """A line for each sweep with its largest size and what ended it."""
    from epochcost.results.limits import load_limits

    latest: dict[str, BatchLimit] = {}
    for limit in sorted(load_limits(results).limits, key=lambda one: one.ended_at):
        if limit.hardware == hardware:
            latest[limit.sweep_id] = limit
    for sweep in sweeps:
        if sweep.id in latest:
            typer.echo(limit_words(latest[sweep.id]))


def limit_words(limit: BatchLimit) -> str:
    """How a sweep ended, in one line."""
    trial = limit.trial
    work = f"{trial.model} {trial.mode} {trial.provider}"
    said = f", {trial.variant}" if trial.variant else ""
    largest = limit.largest_that_ran
    ran = "no batch ran" if largest is None else f"largest batch that ran {largest:,}"
    return f"{work}{said}: {ran}; ended by {limit.cause}: {limit.reason}"
