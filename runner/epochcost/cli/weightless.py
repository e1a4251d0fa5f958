"""`epochcost weightless`: a file of kilobytes from one that stores its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epochcost.errors import UsageError
from epochcost.graphs.loading import load_model_bytes
from epochcost.graphs.parameters import parameter_count
from epochcost.graphs.weightless import weightless as without_weights
from epochcost.results.files import write_atomically
from epochcost.units import memory


def weightless(
    model: Annotated[Path, typer.Argument(help="An ONNX file, with its external data beside it.")],
    destination: Annotated[Path, typer.Option("--out", "-o", help="The file to write, .onnx.")],
) -> None:
    """Write an ONNX file without its weights, which are drawn."""
    if destination.suffix != ".onnx":
        raise UsageError(f"--out: expected a file name that ends in .onnx, got {destination}")
    data = without_weights(model).SerializeToString(deterministic=True)
    # Read back first: nothing is left of a file that could not be.
    numbers = parameter_count(load_model_bytes(data))
    write_atomically(destination, data)
    typer.echo(f"{destination}: {memory(len(data))}; {numbers:,} parameters are drawn")
