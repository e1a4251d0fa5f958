"""`epochcost run`: measure the trials of the studies on this machine and store the results."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console

from epochcost.cli.bundled import own_catalogue
from epochcost.cli.ceilings import measure_missing_ceilings
from epochcost.cli.interruption import INTERRUPTED, interrupted_by_signals
from epochcost.cli.outcomes import show_costs, show_outcomes, show_refusals
from epochcost.cli.plan import Selection, show_extent
from epochcost.cli.progress import Display, render_kept
from epochcost.cli.terminal import RESULTS, ResultsFolder, with_option_groups
from epochcost.errors import InputError
from epochcost.execute.assignment import (
    Assignment,
    Event,
    Failed,
    Finished,
    Outcome,
    RoundStored,
    Skipped,
)
from epochcost.execute.planning import plan_run
from epochcost.execute.run import run_trials
from epochcost.plan.make import Plan, why_left_out
from epochcost.results.store import ResultStore


@with_option_groups
def run(
    selection: Selection,
    *,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip trials that this host has already measured.")
    ] = False,
    results: ResultsFolder = RESULTS,
    patience: Annotated[
        float,
        typer.Option(
            min=0,
            max=100_000,
            help="Minutes by which the run may exceed the plan, to wait while other programs use "
            "the machine and to add rounds to imprecise or disturbed trials.",
        ),
    ] = 0,
    ceilings: Annotated[
        bool,
        typer.Option(
            "--ceilings/--no-ceilings",
            help="After the run, measure the machine's peak rates in some seconds, unless stored.",
        ),
    ] = True,
) -> None:
    """Measure the models of the studies on this machine.

    Example: epochcost run --study starter --resume
    """
    catalogue, hardware = own_catalogue(), selection.hardware
    planned = plan_run(catalogue, selection.request())
    if not planned.trials and not planned.sweeps:
        reasons = "".join(f"\n  {reason}" for reason in why_left_out(planned.left_out))
        raise InputError(f"expected at least one trial to run, found none{reasons}")
    show_extent(planned, catalogue, hardware)
    assignment = Assignment(
        catalogue,
        planned,
        hardware,
        ResultStore(results),
        resume=resume,
        patience_seconds=60 * patience,
    )
    outcomes = _run_trials_with_display(assignment, planned)
    show_outcomes(outcomes, planned, results, hardware, patient=patience > 0)
    show_refusals(catalogue, outcomes)
    if ceilings and not selection.quick:
        with interrupted_by_signals():
            # In reverse order, so that the device of a provider's first trial is set last.
            trials = reversed(planned.every_trial)
            devices = {trial.provider: trial.session.device for trial in trials}
            for provider, device in sorted(devices.items()):
                measure_missing_ceilings(catalogue.machine(hardware), results, provider, device)
    show_costs(catalogue, results, outcomes)
    _exit_if_trials_failed(outcomes)


def _run_trials_with_display(assignment: Assignment, plan: Plan) -> tuple[Outcome, ...]:
    # The latest event of each trial that has a result, by id.
    latest: dict[str, Event] = {}
    try:
        with (
            interrupted_by_signals() as require_no_signal,
            Display(Console(stderr=True)) as display,
        ):

            def on_event(event: Event) -> None:
                if isinstance(event, Finished | Skipped | RoundStored):
                    latest[event.trial.id] = event
                # The trials go on if the disk of the log is full.
                with contextlib.suppress(OSError):
                    display(event)
                require_no_signal()

            return run_trials(assignment, on_event)
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {_render_kept_results(latest, len(plan.trials))}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _render_kept_results(latest: Mapping[str, Event], total: int) -> str:
    parts = sum(isinstance(event, RoundStored) for event in latest.values())
    unfinished = f", {parts} more in some of their rounds" if parts else ""
    finished = len(latest) - parts
    # A sweep adds trials as it runs, so their number is unknown.
    of_all = f" of {total}" if total and len(latest) <= total else ""
    return f"{finished}{of_all} trials are stored{unfinished}; add --resume to continue"


def _exit_if_trials_failed(outcomes: Sequence[Outcome]) -> None:
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    if not failed:
        return
    typer.echo(f"{len(failed)} of {len(outcomes)} trials failed:", err=True)
    for failure in failed:
        typer.echo(f"  {failure.trial.title}: {failure.error}{render_kept(failure)}", err=True)
    codes = {failure.error.exit_code for failure in failed}
    raise typer.Exit(codes.pop() if len(codes) == 1 else 1)
