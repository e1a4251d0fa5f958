"""`epochcost weightless`: replace the stored weights of an ONNX file by random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epochcost.errors import UsageError
from epochcost.graphs.weightless import weightless as without_weights
from epochcost.results.files import unwritable, write_atomically
from epochcost.units import memory
from onnxstep.graphs.parameters import parameter_count


def weightless(
    model: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="An ONNX file, with its external data next to it."),
    ],
    destination: Annotated[Path, typer.Option("--out", "-o", help="The .onnx file to write.")],
) -> None:
    """Write a copy of an ONNX file without the weights.

    The copy states the standard deviation of each parameter's values instead of the values. A trial
    of `epochcost run` draws random values with this deviation when the trial starts.

    Example: epochcost weightless exported/model.onnx -o models/mine.onnx
    """
    if destination.suffix != ".onnx":
        raise UsageError(f"--out: expected a file name that ends in .onnx, got {destination}")
    if destination.exists():
        raise UsageError(f"--out: expected a new file, got {destination}, which exists: remove it")
    drawn = without_weights(model)
    data = drawn.SerializeToString(deterministic=True)
    write_atomically(destination, data, unwritable)
    typer.echo(
        f"{destination}: {memory(len(data))}; {parameter_count(drawn):,} parameters are drawn"
    )
