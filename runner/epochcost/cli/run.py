"""`epochcost run`: measure the trials of the studies on this machine and store the results."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from epochcost.cli.agreement import show_agreements
from epochcost.cli.ceilings import WithCeilings, measure_missing_ceilings
from epochcost.cli.epochs import EpochLimit, ValidateEpochs, epochs_asked, show_epochs
from epochcost.cli.interruption import interrupted_by_signals
from epochcost.cli.limits import BatchSize, show_limits
from epochcost.cli.plan import (
    AsIs,
    Compliant,
    CpuCounts,
    Device,
    HardwareId,
    Models,
    OutputFormat,
    ProviderName,
    Quick,
    Studies,
    plan_for,
    show_gpus,
)
from epochcost.cli.tables import print_table
from epochcost.results.epochs import MOST_EPOCH_SECONDS
from epochcost.specs.study import MOST_ROUNDS

if TYPE_CHECKING:
    from epochcost.execute.events import Event, Failed, Outcome
    from epochcost.execute.run import Assignment
    from epochcost.plan.make import Plan

RESULTS = Path("docs/data/results")
_INTERRUPTED = 130


def run(
    *,
    study: Studies = None,
    model: Models = None,
    provider: ProviderName = None,
    hardware: HardwareId = "local",
    quick: Quick = False,
    compliant: Compliant = False,
    as_is: AsIs = False,
    device: Device = None,
    vcpus: CpuCounts = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip the trials that this host has measured.")
    ] = False,
    results: Annotated[
        Path, typer.Option("--results", help="The folder that keeps the results.")
    ] = RESULTS,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_ROUNDS,
            help="Come back to each trial so often, in another order. Default: the study's.",
        ),
    ] = None,
    batch_size: BatchSize = None,
    validate_epochs: ValidateEpochs = 0,
    epoch_limit: EpochLimit = MOST_EPOCH_SECONDS,
    ceilings: WithCeilings = True,
    output: OutputFormat = "text",
) -> None:
    """Measure the trials of the studies on this machine and store the results."""
    from epochcost.execute.run import Assignment
    from epochcost.results.store import ResultStore

    catalogue, planned = plan_for(
        study,
        model,
        provider,
        hardware=hardware,
        quick=quick,
        compliant=compliant,
        as_is=as_is,
        device=device,
        vcpus=vcpus,
        batch_size=batch_size,
    )
    _require_trials(planned)
    if output == "text":
        show_gpus()
    asked = planned.rounds if rounds is None else {one.id: rounds for one in planned.trials}
    assignment = Assignment(
        catalogue,
        planned.trials,
        hardware,
        ResultStore(results),
        resume=resume,
        rounds=asked,
        epochs=epochs_asked(validate_epochs, epoch_limit),
        sweeps=[one if rounds is None else replace(one, rounds=rounds) for one in planned.sweeps],
    )
    outcomes = _watched(assignment, planned)
    if output == "json":
        typer.echo(json.dumps([_as_json(outcome) for outcome in outcomes], indent=1))
    else:
        _show(outcomes, planned, results / hardware)
        show_limits(results, hardware, planned.sweeps)
    if ceilings and not quick and _on_the_cpu(planned):
        with interrupted_by_signals():
            measure_missing_ceilings(catalogue.machine(hardware), results)
    _exit_with_failures(outcomes)


def _require_trials(plan: Plan) -> None:
    from epochcost.errors import InputError

    if not plan.trials and not plan.sweeps:
        reasons = "".join(f"\n  {left.what}: {left.reason}" for left in plan.left_out)
        raise InputError(f"demanded at least one trial to run; got none{reasons}")


def _on_the_cpu(plan: Plan) -> bool:
    trials = (*plan.trials, *(sweep.trial for sweep in plan.sweeps))
    return any(trial.provider == "cpu" for trial in trials)


def _watched(assignment: Assignment, plan: Plan) -> tuple[Outcome, ...]:
    """Run with a display; an interruption says what is kept and how to go on."""
    from epochcost.cli.progress import display_for
    from epochcost.execute.run import run_trials

    kept: dict[str, Event] = {}
    try:
        with (
            interrupted_by_signals() as interruption,
            display_for(Console(stderr=True)) as display,
        ):

            def on_event(event: Event) -> None:
                _note(event, kept)
                with contextlib.suppress(OSError):  # a full disk under its log costs no trial
                    display(event)
                interruption.require_none()

            return run_trials(assignment, on_event)
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {_kept_words(kept, len(plan.trials))}", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def _note(event: Event, kept: dict[str, Event]) -> None:
    """Remember the trials of which there is a result, by id, each with its latest event."""
    from epochcost.execute.events import Finished, RoundKept, Skipped

    if isinstance(event, Finished | Skipped | RoundKept):
        kept[event.trial.id] = event


def _kept_words(kept: Mapping[str, Event], total: int) -> str:
    from epochcost.execute.events import RoundKept

    parts = sum(isinstance(event, RoundKept) for event in kept.values())
    others = f", {parts} more in some of their rounds" if parts else ""
    finished = len(kept) - parts
    # A sweep finds its trials while it goes, so their number is not known.
    of_all = f" of {total}" if total and len(kept) <= total else ""
    return f"{finished}{of_all} trials are measured and kept{others}; add --resume to go on"


def _as_json(outcome: Outcome) -> dict[str, Any]:
    from epochcost.execute.events import Failed

    if isinstance(outcome, Failed):
        return {"trial": outcome.trial.id, "error": str(outcome.error)}
    return outcome.result.model_dump(mode="json")


def _show(outcomes: Sequence[Outcome], plan: Plan, folder: Path) -> None:
    from epochcost.cli.stability import show_doubts, show_outliers
    from epochcost.execute.events import Failed

    print_table(
        ("trial", "mean step", "±", "examples/s", "samples", "stopped"),
        [_row(outcome) for outcome in outcomes],
    )
    kept = len(outcomes) - len(_failures(outcomes))
    typer.echo(f"{kept} of {len(outcomes)} results are in {folder}")
    if plan.left_out:
        typer.echo(f"{len(plan.left_out)} left out; `epochcost plan` says why")
    measured = [one.result for one in outcomes if not isinstance(one, Failed)]
    show_epochs(measured)
    show_outliers(measured)
    show_agreements([one.result for one in outcomes if not isinstance(one, Failed)])
    show_doubts(measured)


def _row(outcome: Outcome) -> tuple[str, ...]:
    from epochcost.cli.served import served_cells
    from epochcost.execute.events import Failed, Skipped
    from epochcost.results.summary import summary_of
    from epochcost.units import seconds

    if isinstance(outcome, Failed):
        return (outcome.trial.title, "-", "-", "-", "-", "failed")
    measurement = outcome.result.measurement
    stored = " (stored before)" if isinstance(outcome, Skipped) else ""
    if measurement.served is not None:
        *cells, last = served_cells(measurement.served)
        return (outcome.trial.title, *cells, last + stored)
    summary = summary_of(measurement)
    return (
        outcome.trial.title,
        seconds(summary.mean),
        f"{summary.relative_half_width:.1%}",
        f"{outcome.trial.batch_size / summary.mean:,.0f}",
        str(summary.count),
        measurement.stop_reason + stored,
    )


def _failures(outcomes: Sequence[Outcome]) -> list[Failed]:
    from epochcost.execute.events import Failed

    return [outcome for outcome in outcomes if isinstance(outcome, Failed)]


def _exit_with_failures(outcomes: Sequence[Outcome]) -> None:
    """List what failed; exit 3 where the machine is at fault for all of it, else 1."""
    from epochcost.cli.progress import kept_words

    failures = _failures(outcomes)
    if not failures:
        return
    typer.echo(f"{len(failures)} of {len(outcomes)} trials failed:", err=True)
    for failure in failures:
        typer.echo(f"  {failure.trial.title}: {failure.error}{kept_words(failure)}", err=True)
    codes = {failure.error.exit_code for failure in failures}
    raise typer.Exit(codes.pop() if len(codes) == 1 else 1)
