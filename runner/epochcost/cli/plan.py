"""`epochcost plan`: the trials that a run would do here, and why others are left out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from epochcost.cli.tables import print_table
from epochcost.errors import CapabilityError
from epochcost.specs.study import Provider
from epochcost.units import seconds

if TYPE_CHECKING:
    from epochcost.plan.make import Plan
    from epochcost.specs.catalogue import Catalogue


Studies = Annotated[
    list[str] | None, typer.Option("--study", help="A study's id; repeatable. Default: all.")
]
Models = Annotated[
    list[str] | None, typer.Option("--model", help="A model's id; repeatable. Default: all.")
]
ProviderName = Annotated[
    Provider | None,
    typer.Option("--provider", help="Only this execution provider; an error where it is unusable."),
]
HardwareId = Annotated[
    str, typer.Option("--hardware", help="The machine that this one is; `local`: as detected.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Seconds per trial, and a wider interval of the mean.")
]
OutputFormat = Annotated[
    Literal["text", "json"], typer.Option("--format", help="For a person or for a machine.")
]


def plan(
    *,
    study: Studies = None,
    model: Models = None,
    provider: ProviderName = None,
    hardware: HardwareId = "local",
    quick: Quick = False,
    output: OutputFormat = "text",
) -> None:
    """Show the trials that a run would do here, and why others are left out."""
    _, planned = plan_for(study, model, provider, hardware=hardware, quick=quick)
    if output == "json":
        typer.echo(json.dumps(_as_json(planned, hardware), indent=1))
    else:
        _show(planned, hardware)


def plan_for(
    studies: list[str] | None,
    models: list[str] | None,
    provider: Provider | None,
    *,
    hardware: str,
    quick: bool,
) -> tuple[Catalogue, Plan]:
    """The catalogue under the current folder and its plan; a named provider is verified first."""
    with _explaining_missing_packages():
        from epochcost.execute.planning import Request, plan_here, require_providers
    from epochcost.specs.loader import load_catalogue

    wanted = () if provider is None else (provider,)
    require_providers(wanted)
    catalogue = load_catalogue(Path())
    request = Request(tuple(studies or ()), tuple(models or ()), wanted, hardware, quick)
    return catalogue, plan_here(catalogue, request)


@contextlib.contextmanager
def _explaining_missing_packages() -> Iterator[None]:
    """Measuring needs packages that building the site does not."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("epochcost"):
            raise
        raise CapabilityError(
            f"demanded the packages that measure; {error.name} is not installed: "
            "`pip install -r requirements/run.txt`, or the extra `epochcost[run]`"
        ) from None


def _as_json(plan: Plan, hardware: str) -> dict[str, Any]:
    return {
        "hardware": hardware,
        "trials": [{"id": trial.id} | trial.model_dump(mode="json") for trial in plan.trials],
        "left_out": [{"what": left.what, "reason": left.reason} for left in plan.left_out],
    }


def _show(plan: Plan, hardware: str) -> None:
    budget_seconds = float(sum(trial.budget_seconds for trial in plan.trials))
    typer.echo(
        f"{len(plan.trials)} trials on {hardware}, at most {seconds(budget_seconds)} of timing"
    )
    if plan.trials:
        print_table(
            ("trial", "id", "budget"),
            [(trial.title, trial.id, f"{trial.budget_seconds} s") for trial in plan.trials],
        )
    for reason in dict.fromkeys(left.reason for left in plan.left_out):
        what = [left.what for left in plan.left_out if left.reason == reason]
        typer.echo("\n".join([f"left out, because {reason}:", *(f"  {name}" for name in what)]))
