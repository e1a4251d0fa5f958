"""`epochcost plan`: the trials that a run would do here, and why others are left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from epochcost.cli.completion import ids
from epochcost.cli.limits import BatchSize, batch_size_of
from epochcost.cli.sizes import Sized, show_sizes, sizes_as_json
from epochcost.cli.tables import print_table
from epochcost.errors import InputError
from epochcost.specs.study import MOST_CPUS, Provider
from epochcost.units import seconds

if TYPE_CHECKING:
    from epochcost.plan.make import Plan
    from epochcost.specs.catalogue import Catalogue


Studies = Annotated[
    list[str] | None,
    typer.Option(
        "--study", help="A study's id; repeatable. Default: all.", autocompletion=ids("studies")
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", help="A model's id; repeatable. Default: all.", autocompletion=ids("models")
    ),
]
ProviderName = Annotated[
    Provider | None,
    typer.Option("--provider", help="Only this execution provider; an error where it is unusable."),
]
HardwareId = Annotated[
    str,
    typer.Option(
        "--hardware",
        help="The machine that this one is; `local`: as detected.",
        autocompletion=ids("hardware"),
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Seconds per trial, and a wider interval of the mean.")
]
Compliant = Annotated[
    bool,
    typer.Option(
        "--compliant", help="MLPerf's durations and counts in its scenarios: 10 min each."
    ),
]
AsIs = Annotated[
    bool,
    typer.Option("--as-is", help="Measure a machine that contradicts --hardware, and mark it."),
]
Device = Annotated[
    int | None,
    typer.Option("--device", min=0, help="The GPU by CUDA's number. Default: the study's, or 0."),
]
CpuCounts = Annotated[
    str | None,
    typer.Option(
        "--vcpus",
        help="Pin the CPU's trials to so many CPUs each, as 1,2,4. Default: the studies' vcpus.",
    ),
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
    compliant: Compliant = False,
    as_is: AsIs = False,
    device: Device = None,
    vcpus: CpuCounts = None,
    batch_size: BatchSize = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also how large every model is, and what fits here.")
    ] = False,
    output: OutputFormat = "text",
) -> None:
    """Show the trials that a run would do here, and why others are left out."""
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
    sized = _sized(catalogue, model or catalogue.models) if verbose else ()
    if output == "json":
        typer.echo(json.dumps(_as_json(planned, hardware) | _sizes_as_json(sized), indent=1))
    else:
        _show(planned, hardware)
        _show_sizes(sized)


def plan_for(
    studies: list[str] | None,
    models: list[str] | None,
    provider: Provider | None,
    *,
    hardware: str,
    quick: bool,
    compliant: bool = False,
    as_is: bool = False,
    device: int | None = None,
    vcpus: str | None = None,
    batch_size: str | None = None,
) -> tuple[Catalogue, Plan]:
    """The catalogue under the current folder and its plan."""
    from epochcost.execute.planning import Request, plan_here
    from epochcost.specs.loader import load_catalogue

    catalogue = load_catalogue(Path())
    request = Request(
        tuple(studies or ()),
        tuple(models or ()),
        () if provider is None else (provider,),
        hardware,
        quick,
        compliant,
        as_is,
        device,
        _cpu_counts(vcpus),
        batch_size_of(batch_size),
    )
    return catalogue, plan_here(catalogue, request)


def _cpu_counts(text: str | None) -> tuple[int, ...]:
    """The counts of ``--vcpus``; raises InputError where one is none, or comes twice."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    counts = [int(part) if part.isdecimal() and len(part) < 5 else 0 for part in parts]
    if len(set(counts)) < len(counts) or not all(1 <= one <= MOST_CPUS for one in counts):
        raise InputError(
            f"--vcpus: demanded different counts of CPUs from 1 to {MOST_CPUS}, such as 1,2,4; "
            f"got {text!r:.40}"
        )
    return tuple(counts)


def _sized(catalogue: Catalogue, models: Iterable[str]) -> Sequence[Sized]:
    """Every model with its size, those without a study too."""
    from epochcost.cli.progress import counting
    from epochcost.execute.inventory import sizes

    with counting(Console(stderr=True)) as on_counted:
        counted = sizes(catalogue, models, on_counted)
    return [(catalogue.model(name), counted.get(name)) for name in sorted(set(models))]


def _show_sizes(sized: Sequence[Sized]) -> None:
    from epochcost.execute.planning import room_bytes

    if sized:
        show_sizes(sized, room_bytes())


def _sizes_as_json(sized: Sequence[Sized]) -> dict[str, Any]:
    from epochcost.execute.planning import room_bytes

    return sizes_as_json(sized, room_bytes()) if sized else {}


def _as_json(plan: Plan, hardware: str) -> dict[str, Any]:
    from epochcost.measure.environment import shown_gpus

    return {
        "hardware": hardware,
        "trials": [
            {"id": trial.id, "rounds": plan.rounds.get(trial.id, 1)} | trial.model_dump(mode="json")
            for trial in plan.trials
        ],
        "sweeps": [
            {"id": sweep.id, "largest": sweep.largest, "bound": sweep.bound}
            | {"rounds": sweep.rounds}
            | {"smallest": sweep.trial.model_dump(mode="json")}
            for sweep in plan.sweeps
        ],
        "left_out": [{"what": left.what, "reason": left.reason} for left in plan.left_out],
        "gpus": [
            {"device": number, "name": gpu.name, "memory_bytes": gpu.memory_bytes}
            for number, gpu in enumerate(shown_gpus())
        ],
    }


def show_gpus() -> None:
    """A line for each GPU that CUDA shows; none where there is none."""
    from epochcost.execute.gpus import gpu_lines
    from epochcost.measure.environment import shown_gpus

    for line in gpu_lines(shown_gpus()):
        typer.echo(line)


def _show(plan: Plan, hardware: str) -> None:
    budget_seconds = float(sum(trial.expected_seconds for trial in plan.trials))
    typer.echo(
        f"{len(plan.trials)} trials on {hardware}, at most {seconds(budget_seconds)} of timing"
    )
    show_gpus()
    if plan.trials:
        print_table(
            ("trial", "id", "rounds", "budget"),
            [
                (one.title, one.id, str(plan.rounds.get(one.id, 1)), f"{one.expected_seconds} s")
                for one in plan.trials
            ],
        )
    for sweep in plan.sweeps:
        budget = seconds(float(sweep.trial.expected_seconds))
        rounds = f" in {sweep.rounds} rounds" if sweep.rounds > 1 else ""
        typer.echo(f"sweep {sweep.id}, {budget} a size{rounds}: {sweep.title}")
    for reason in dict.fromkeys(left.reason for left in plan.left_out):
        what = [left.what for left in plan.left_out if left.reason == reason]
        typer.echo("\n".join([f"left out, because {reason}:", *(f"  {name}" for name in what)]))
