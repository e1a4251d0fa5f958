"""Read the values of a model's spec from its ONNX file, for `epochcost new model`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from decimal import Decimal
from filecmp import cmp
from pathlib import Path
from typing import Any

from onnx import ModelProto, TensorProto

from epochcost.cli.terminal import pairs
from epochcost.errors import InputError, UsageError
from epochcost.plan.binding import bind_model, graph_misfits
from epochcost.specs.findings import validate
from epochcost.specs.model import Model
from onnxstep.graphs.binding import symbolic_dimensions
from onnxstep.graphs.loading import external_files, load_model
from onnxstep.graphs.parameters import DataInput, data_inputs

_FOLDER = Path("models")
_OF_CLASSES = ("softmax_cross_entropy", "nll")


def load_step_graph(graph: Path) -> ModelProto:
    """Load a graph; raises InputError for a decoder's graph, and for one without an output."""
    loaded = load_model(graph)
    if any(data_input.name.startswith("past_key_values.") for data_input in data_inputs(loaded)):
        raise InputError(
            f"{graph}: expected a graph without a cache, got a decoder's: declare its form in a "
            "table [decoder], as docs/how-to/add-a-decoder.md says"
        )
    if not loaded.graph.output:
        raise InputError(f"{graph}: expected a graph with an output, got none")
    return loaded


def values_of_graph(
    graph: Path,
    loaded: ModelProto,
    given: Mapping[str, Any],
    dim_options: Sequence[str],
    vocabulary_options: Sequence[str],
    training: tuple[str, int, int] | None,
) -> dict[str, Any]:
    """Make the values of a model's spec that follow from its ONNX file and from options.

    ``given`` has the other values, only to check the complete spec. ``training`` has the loss, the
    examples of an epoch and the epochs; None means inference only. Raises an EpochcostError for a
    missing or invalid option, or if the graph contradicts the spec.
    """
    inputs = data_inputs(loaded)
    first = {each.name: each.shape[0] for each in inputs if each.shape}
    batch_dimensions = {f"{name}[0]" if size == "?" else size for name, size in first.items()}
    names = [name for name in symbolic_dimensions(loaded) if name not in batch_dimensions]
    dimensions = _sizes("--dim", dim_options, names)
    indices = [each.name for each in inputs if _is_index(each)]
    vocabulary = _sizes("--vocabulary", vocabulary_options, indices)
    fixed = [size for size in first.values() if isinstance(size, int)][:1]
    values = {
        "graph": graph.name,
        "dimensions": {name: dimensions[name] for name in names} or None,
        "inputs": [_input_values(each, vocabulary) for each in inputs],
        "inference": {"batch_sizes": fixed or [1, 8, 32]},
    }
    if training is not None:
        batches = {"batch_sizes": fixed or [32]}
        values["training"] = _placeholder_training(loaded, *training) | batches
    _require_fitting_graph(loaded, graph, {**given, **values})
    return values


def _sizes(option: str, texts: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """Parse a repeated option NAME=SIZE that has to give a size for each of ``names``."""
    sizes = pairs(option, texts, "sequence=128")
    for name, size in sizes.items():
        if not size.isdecimal() or not int(size):
            raise InputError(f"{option}: expected a whole number, {name}=128, got {name}={size}")
        if name not in names:
            expected = f"one of {', '.join(names)}" if names else "none for this graph"
            raise InputError(f"{option}: expected {expected}, got {name}")
    missing = [f"{option} {name}=SIZE" for name in names if name not in sizes]
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}")
    return {name: int(size) for name, size in sizes.items()}


def _input_values(data_input: DataInput, vocabulary_sizes: dict[str, int]) -> dict[str, Any]:
    if _is_index(data_input):
        return {"name": data_input.name, "vocabulary": vocabulary_sizes[data_input.name]}
    return {"name": data_input.name, "low": Decimal(0), "high": Decimal(1)}


def _is_index(data_input: DataInput) -> bool:
    return data_input.elem_type in (TensorProto.INT64, TensorProto.INT32)


def _placeholder_training(
    loaded: ModelProto, loss: str, examples: int, epochs: int
) -> dict[str, Any]:
    output = loaded.graph.output[0]
    last = max((dim.dim_value for dim in output.type.tensor_type.shape.dim[-1:]), default=0)
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
        "examples_per_epoch": examples,
        "epochs": epochs,
    }


def _require_fitting_graph(loaded: ModelProto, graph: Path, values: Mapping[str, Any]) -> None:
    """Raise an EpochcostError if the graph contradicts values that are valid by themselves."""
    declared = validate(Model, {key: value for key, value in values.items() if value is not None})
    if isinstance(declared, tuple):
        return
    for misfit in graph_misfits(loaded, declared):
        raise InputError(f"{graph}: {misfit}")
    assert declared.inference is not None, "new models have batch sizes of inference"
    bind_model(loaded, declared, declared.inference.batch_sizes[0])


def copy_to_models(graph: Path) -> list[Path]:
    """Copy the graph and its external data; return the files that models/ did not have."""
    names = (graph.name, *external_files(graph))
    copies = {_FOLDER / name: graph.parent / name for name in names}
    new = {
        copy: file
        for copy, file in copies.items()
        if not (copy.exists() and cmp(copy, file, shallow=False))
    }
    for copy, file in new.items():
        if copy.exists():
            raise InputError(
                f"{copy}: expected an unused name, but another model's file has it: rename {file}"
                + ("" if file == graph else ", by exporting again under another name")
            )
    for copy, file in new.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = copy.with_name(f".{copy.name}.partial")
        shutil.copyfile(file, partial)
        partial.replace(copy)
    return [*new]
