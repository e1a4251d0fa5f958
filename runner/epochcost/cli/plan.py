"""`epochcost plan`: the trials that a run would do here, and why others are left out.

With `--verbose` also how large the models are, and which of their batches fit this machine.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from epochcost.cli import terminal
from epochcost.cli.progress import counting
from epochcost.cli.terminal import batch_size_of, cpu_counts, print_json, print_table
from epochcost.errors import EpochcostError
from epochcost.execute.planning import Request, gpu_lines, plan_here, room_bytes
from epochcost.execute.sizes import model_sizes
from epochcost.measure.gpus import shown_gpus
from epochcost.plan.make import Plan
from epochcost.plan.size import Footprint, ModelSize
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Mode, Provider
from epochcost.units import memory, scientific, seconds

_WIDTH = 100
_PROVIDERS: tuple[Provider, ...] = ("cpu", "cuda")
_HEADER = ("model", "parameters", "trained", "forward", "3 x forward", "step here")
# A model with its size, why it has none, or None where there is no graph to count.
_Sized = tuple[Model, ModelSize | EpochcostError | None]
_Room = Mapping[Provider, int]


def plan(
    *,
    study: terminal.Studies = None,
    model: terminal.Models = None,
    provider: terminal.ProviderName = None,
    hardware: terminal.HardwareId = "local",
    quick: terminal.Quick = False,
    compliant: terminal.Compliant = False,
    as_is: terminal.AsIs = False,
    device: terminal.Device = None,
    vcpus: terminal.CpuCounts = None,
    batch_size: terminal.BatchSize = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also how large every model is, and what fits here.")
    ] = False,
    output: terminal.OutputFormat = "text",
) -> None:
    """Show the trials that a run would do here, and why others are left out."""
    catalogue = load_catalogue(Path())
    request = Request(
        studies=tuple(study or ()),
        models=tuple(model or ()),
        providers=(provider,) if provider else (),
        hardware=hardware,
        quick=quick,
        compliant=compliant,
        as_is=as_is,
        device=device,
        vcpus=cpu_counts(vcpus),
        batch_size=batch_size_of(batch_size),
    )
    planned = plan_here(catalogue, request)
    sized = _sized(catalogue, model or catalogue.models) if verbose else ()
    if output == "json":
        sizes_too = _sizes_as_json(sized, room_bytes()) if sized else {}
        print_json(_as_json(planned, hardware) | sizes_too, indent=1)
    else:
        _show(planned, hardware)
        if sized:
            _show_sizes(sized, room_bytes())


def _sized(catalogue: Catalogue, models: Iterable[str]) -> Sequence[_Sized]:
    """Every model with its size, those without a study too."""
    with counting(Console(stderr=True)) as on_counted:
        counted = model_sizes(catalogue, models, on_counted)
    return [(catalogue.model(name), counted.get(name)) for name in sorted(set(models))]


def _as_json(plan: Plan, hardware: str) -> dict[str, Any]:
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
        "left_out": plan.left_out,
        "gpus": [
            {"device": number, "name": gpu.name, "memory_bytes": gpu.memory_bytes}
            for number, gpu in enumerate(shown_gpus())
        ],
    }


def show_gpus() -> None:
    """A line for each GPU that CUDA shows; none where there is none."""
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


def _show_sizes(sized: Sequence[_Sized], room: _Room) -> None:
    """A table of arithmetic, then the memory of each batch size and whether there is room."""
    typer.echo(
        "\nFLOPs of one example: forward, a training step as the literature counts it (3 x forward)"
        "\nand as it runs here:"
    )
    print_table(_HEADER, [_size_row(model, size) for model, size in sized])
    limits = ", ".join(f"{provider} {memory(limit)}" for provider, limit in room.items())
    typer.echo(f"\nMemory by batch size; a trial may take here: {limits}")
    for model, size in sized:
        for line in _memory_lines(model, size, room):
            typer.echo(textwrap.fill(line, _WIDTH, subsequent_indent="    "))


def _sizes_as_json(sized: Sequence[_Sized], room: _Room) -> dict[str, Any]:
    """The same, every figure exact."""
    return {
        "memory_bytes": dict(room),
        "models": [{"id": model.id, **_size_as_json(model, size, room)} for model, size in sized],
    }


def _size_as_json(
    model: Model, size: ModelSize | EpochcostError | None, room: _Room
) -> dict[str, Any]:
    if model.declared is not None:
        declared = model.declared
        return {
            "parameters": declared.parameters,
            "training_tokens": declared.training_tokens,
            "training_flops": declared.training_flops,
        }
    if size is None or isinstance(size, EpochcostError):
        return {"error": str(size)}
    forward = size.forward_flops_per_example
    return {
        **{
            field.name: getattr(size, field.name)
            for field in dataclasses.fields(size)
            if field.name not in {"model", "footprints", "uncounted"}
        },
        "forward_flops_per_example": forward,
        "literature_step_flops_per_example": None if forward is None else 3 * forward,
        "step_flops_per_example": size.step_flops_per_example,
        "batches": [_batch_as_json(footprint, room) for footprint in size.footprints],
        "uncounted": size.uncounted,
    }


def _batch_as_json(footprint: Footprint, room: _Room) -> dict[str, Any]:
    needed = {provider: footprint.memory_bytes(provider) for provider in _PROVIDERS}
    return {
        **dataclasses.asdict(footprint),
        "memory_bytes": needed,
        "fits": {provider: needed[provider] <= limit for provider, limit in room.items()},
    }


def _size_row(model: Model, size: ModelSize | EpochcostError | None) -> tuple[str, ...]:
    if model.declared is not None:
        return (model.id, f"{model.declared.parameters:,}", "-", "-", "-", "-")
    if size is None or isinstance(size, EpochcostError):
        return (model.id, *["-"] * (len(_HEADER) - 1))
    forward = size.forward_flops_per_example
    return (
        model.id,
        f"{size.parameters:,}",
        "all" if size.trainable_parameters == size.parameters else f"{size.trainable_parameters:,}",
        _flops(forward),
        _flops(None if forward is None or model.training is None else 3 * forward),
        _flops(size.step_flops_per_example),
    )


def _flops(value: float | None) -> str:
    return "-" if value is None else scientific(value)


def _memory_lines(
    model: Model, size: ModelSize | EpochcostError | None, room: _Room
) -> Iterator[str]:
    if model.declared is not None:
        total = _flops(float(model.declared.training_flops))
        yield f"{model.id}: no graph; {total} FLOPs train it, 6 for each parameter and token"
    elif size is None or isinstance(size, EpochcostError):
        yield f"{model.id}: not counted: {size}"
    else:
        for mode in dict.fromkeys(footprint.mode for footprint in size.footprints):
            for provider, limit in room.items():
                yield f"{model.id} {mode} {provider}: {_batches(size, mode, provider, limit)}"
        for missing in size.uncounted:
            yield f"{model.id} {missing.mode}: not counted: {missing.reason}"


def _batches(size: ModelSize, mode: Mode, provider: Provider, limit: int) -> str:
    needed = {
        footprint.batch_size: footprint.memory_bytes(provider)
        for footprint in size.footprints
        if footprint.mode == mode
    }
    return ", ".join(
        f"{batch}: {memory(amount)}" + (" (no room here)" if amount > limit else "")
        for batch, amount in needed.items()
    )
