"""`epochcost new model`: a model's spec from its ONNX file, whose inputs and outputs it reads."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcost.cli.questions import answered, asked, pairs
from epochcost.errors import InputError

if TYPE_CHECKING:
    from onnx import ModelProto

    from epochcost.graphs.parameters import DataInput

_FOLDER = Path("models")
_OF_CLASSES = ("softmax_cross_entropy", "nll")


def model(
    graph: Annotated[
        Path, typer.Option(metavar="FILE", help="Its ONNX file; copied into models/ with its data.")
    ],
    identifier: Annotated[
        str | None, typer.Option("--id", help="The id.  [default: the file's name]")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    task: Annotated[str | None, typer.Option(help="What it does, in a few words.")] = None,
    example: Annotated[str | None, typer.Option(help="What one example is, in words.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    dim: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SIZE", help="A symbolic dimension's size.")
    ] = None,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option(metavar="INPUT=SIZE", help="What the indices of an input stay below."),
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="How it is trained; served only when left out.")
    ] = None,
    examples_per_epoch: Annotated[int, typer.Option(min=1, help="Of a training.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Of a training.")] = 1,
) -> None:
    """Declare a model in specs/models/: inputs, outputs and shapes are read from its graph."""
    from epochcost.graphs.loading import load_model
    from epochcost.graphs.parameters import data_inputs
    from epochcost.specs.layout import new_spec

    loaded = load_model(graph)
    inputs = data_inputs(loaded)
    given = {
        "id": identifier or graph.stem.lower().replace("_", "-"),
        "name": name or graph.stem,
        "task": task,
        "example": example,
        "source": source,
    }
    values = answered("models", given)
    values["dimensions"] = _sizes(loaded, inputs, _whole_numbers("--dim", dim or [])) or None
    sizes = _whole_numbers("--vocabulary", vocabulary or [])
    values["inputs"] = [_input(data_input, sizes) for data_input in inputs]
    values["training"] = _training(loaded, loss, examples_per_epoch, epochs) if loss else None
    values["inference"] = {"batch_sizes": [1, 8, 32]}
    copied = _copied(graph)
    try:
        path = new_spec(Path.cwd(), "models", {**values, "graph": graph.name})
    except BaseException:
        for file in copied:
            file.unlink()
        raise
    typer.echo(f"{path.relative_to(Path.cwd())} is new: review it, then run epochcost check")


def _whole_numbers(option: str, texts: Sequence[str]) -> dict[str, int]:
    given = pairs(option, texts, "sequence=128")
    for name, size in given.items():
        if not size.isdecimal() or not int(size):
            raise InputError(f"{option}: demanded a whole number, {name}=128; got {name}={size}")
    return {name: int(size) for name, size in given.items()}


def _sizes(
    loaded: ModelProto, inputs: Sequence[DataInput], given: dict[str, int]
) -> dict[str, int]:
    """The sizes of the symbolic dimensions other than the batch, which comes first."""
    from epochcost.graphs.binding import symbolic_dimensions

    batches = {data_input.shape[0] for data_input in inputs if data_input.shape}
    names = [name for name in symbolic_dimensions(loaded) if name not in batches]
    for name in given:
        if name not in names:
            raise InputError(f"--dim: demanded one of {', '.join(names) or 'none'}; got {name}")
    return {name: given.get(name) or _asked_size("dim", name) for name in names}


def _asked_size(option: str, name: str) -> int:
    text = asked(option, f"The size of {name}, as in --{option} {name}=128.")
    return _whole_numbers(f"--{option}", [f"{name}={text}"])[name]


def _input(data_input: DataInput, sizes: dict[str, int]) -> dict[str, Any]:
    """An input with the values that its type takes: numbers from 0 to 1, or indices."""
    from onnx import TensorProto

    if data_input.elem_type in (TensorProto.INT64, TensorProto.INT32):
        size = sizes.get(data_input.name) or _asked_size("vocabulary", data_input.name)
        return {"name": data_input.name, "vocabulary": size}
    return {"name": data_input.name, "low": Decimal(0), "high": Decimal(1)}


def _training(loaded: ModelProto, loss: str, examples: int, epochs: int) -> dict[str, Any]:
    """A training by plain gradient descent, to be replaced by the source's."""
    output = loaded.graph.output[0]
    last = output.type.tensor_type.shape.dim[-1].dim_value
    target = (
        {"classes": max(2, last)}
        if loss in _OF_CLASSES
        else {"low": Decimal(0), "high": Decimal(1)}
    )
    return {
        "loss": loss,
        "output": output.name,
        "target": target,
        "optimizer": {"name": "sgd", "learning_rate": Decimal("0.01")},
        "batch_sizes": [32],
        "examples_per_epoch": examples,
        "epochs": epochs,
    }


def _copied(graph: Path) -> list[Path]:
    """The copies in models/ of the file and of its external data; none of what is there already.

    Raises InputError, and copies nothing, where another file has the name of one.
    """
    from epochcost.graphs.loading import external_files

    wanted = [
        (graph.parent / name, _FOLDER / name) for name in (graph.name, *external_files(graph))
    ]
    new = [(file, copy) for file, copy in wanted if not (copy.exists() and copy.samefile(file))]
    for file, copy in new:
        if copy.exists():
            raise InputError(
                f"{copy}: demanded a name that no model has; got one that is there: rename {file}"
                + ("" if file == graph else ", by exporting again under another name")
            )
    for file, copy in new:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return [copy for _, copy in new]
