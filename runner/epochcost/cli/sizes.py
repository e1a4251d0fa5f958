"""How large the models are, as `epochcost plan --verbose` shows it: for people and for machines."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from epochcost.cli.tables import print_table
from epochcost.errors import EpochcostError
from epochcost.units import memory, scientific

if TYPE_CHECKING:
    from epochcost.plan.size import Footprint, ModelSize
    from epochcost.specs.model import Model
    from epochcost.specs.study import Mode, Provider

_WIDTH = 100
_HEADER = ("model", "parameters", "trained", "forward", "3 x forward", "step here")

# A model with its size, why it has none, or None where there is no graph to count.
Sized = tuple["Model", "ModelSize | EpochcostError | None"]
Room = Mapping["Provider", int]


def show_sizes(sized: Sequence[Sized], room: Room) -> None:
    """A table of arithmetic, then the memory of each batch size and whether there is room."""
    typer.echo(
        "\nFLOPs of one example: forward, a training step as the literature counts it (3 x forward)"
        "\nand as it runs here:"
    )
    print_table(_HEADER, [_row(model, size) for model, size in sized])
    limits = ", ".join(f"{provider} {memory(limit)}" for provider, limit in room.items())
    typer.echo(f"\nMemory by batch size; a trial may take here: {limits}")
    for model, size in sized:
        for line in _memory_lines(model, size, room):
            typer.echo(textwrap.fill(line, _WIDTH, subsequent_indent="    "))


def sizes_as_json(sized: Sequence[Sized], room: Room) -> dict[str, Any]:
    """The same, every figure exact."""
    return {
        "memory_bytes": dict(room),
        "models": [{"id": model.id, **_as_json(model, size, room)} for model, size in sized],
    }


def _as_json(model: Model, size: ModelSize | EpochcostError | None, room: Room) -> dict[str, Any]:
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
        "uncounted": [dataclasses.asdict(mode) for mode in size.uncounted],
    }


def _batch_as_json(footprint: Footprint, room: Room) -> dict[str, Any]:
    needed = {provider: footprint.memory_bytes(provider) for provider in _PROVIDERS}
    return {
        **dataclasses.asdict(footprint),
        "memory_bytes": needed,
        "fits": {provider: needed[provider] <= limit for provider, limit in room.items()},
    }


_PROVIDERS: tuple[Provider, ...] = ("cpu", "cuda")


def _row(model: Model, size: ModelSize | EpochcostError | None) -> tuple[str, ...]:
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
    model: Model, size: ModelSize | EpochcostError | None, room: Room
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
