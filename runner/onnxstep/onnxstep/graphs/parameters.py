"""Parameters, running statistics and data inputs of a model.

A file without weights lists its parameters in metadata. In other files, all float initializers are
parameters, except running statistics and what the module ``constants`` recognises.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from onnxstep.errors import CapabilityError, ModelError
from onnxstep.graphs.choices import match_names
from onnxstep.graphs.constants import as_parameters, constants
from onnxstep.graphs.exported import separated
from onnxstep.graphs.functions import inline_functions
from onnxstep.graphs.initial import (
    METADATA_KEY,
    STATE_KEY,
    Initial,
    draw,
    listed_parameters,
    listed_state,
)
from onnxstep.graphs.nodes import is_standard, nested_nodes, node_attributes
from onnxstep.graphs.tensors import FLOAT_TYPES


@dataclass(frozen=True)
class Parameter:
    """A trainable tensor or a running statistic; ``elem_type`` is its ``TensorProto`` data type.

    ``initial`` is the distribution of the first values; None if the file stores the values.
    """

    name: str
    shape: tuple[int, ...]
    elem_type: int
    initial: Initial | None


@dataclass(frozen=True)
class DataInput:
    """A graph input that the caller feeds in each step.

    ``shape`` has the name of each symbolic dimension, or ``?`` for a dimension without a name.
    """

    name: str
    shape: tuple[int | str, ...]
    elem_type: int


def parameters(model: onnx.ModelProto) -> tuple[Parameter, ...]:
    """The trainable tensors, in the graph's order; raises ModelError for invalid metadata."""
    listed = listed_parameters(model)
    if listed is not None:
        return _listed(model, METADATA_KEY, listed)
    excluded = {*running_statistics(model), *untrained(model)}
    return tuple(
        _stored(tensor)
        for tensor in model.graph.initializer
        if tensor.data_type in FLOAT_TYPES and tensor.name not in excluded
    )


def untrained(model: onnx.ModelProto) -> dict[str, str]:
    """Names of the stored float tensors that are constants or buffers, each with the reason.

    Running statistics are left out. Empty if the file's metadata lists parameters.
    """
    if listed_parameters(model) is not None:
        return {}
    statistics = running_statistics(model)
    return {name: why for name, why in constants(model).items() if name not in statistics}


def with_parameters(
    kind: str, model: onnx.ModelProto, patterns: Collection[str]
) -> onnx.ModelProto:
    """Mark constants and buffers that match ``patterns`` as parameters, in a copy if there are any.

    Raises ModelError for a pattern without a match; ``kind`` names the setting, such as ``wrt``.
    """
    if not patterns:
        return model
    candidates = untrained(model)
    every = [*(parameter.name for parameter in parameters(model)), *candidates]
    named = candidates.keys() & match_names(kind, patterns, every)
    if not named:
        return model
    marked = as_parameters(model, named)
    # Typed numbers are parameters only in a file without other parameters.
    return as_parameters(marked, untrained(marked).keys() - candidates.keys())


def state(model: onnx.ModelProto) -> tuple[Parameter, ...]:
    """The running statistics of the model: tensors that a step updates without a gradient.

    Those without values come first. Raises ModelError if the metadata's list is invalid.
    """
    statistics = running_statistics(model)
    stored = (tensor for tensor in model.graph.initializer if tensor.name in statistics)
    return (*_listed(model, STATE_KEY, listed_state(model)), *map(_stored, stored))


def data_inputs(model: onnx.ModelProto) -> tuple[DataInput, ...]:
    """Graph inputs that are not parameters, state or initializers, in the order of the graph.

    Raises ModelError for a data input that is not a tensor or has no declared rank.
    """
    carried = {tensor.name for tensor in (*parameters(model), *state(model))}
    carried.update(tensor.name for tensor in model.graph.initializer)
    return tuple(_data_input(value) for value in model.graph.input if value.name not in carried)


def parameter_count(model: onnx.ModelProto) -> int:
    """Number of elements of all parameters, including weights that are stored quantized."""
    trained = sum(math.prod(parameter.shape) for parameter in parameters(model))
    return trained + few_bits_count(model)


def few_bits_count(model: onnx.ModelProto) -> int:
    """Number of weights that MatMulNBits and DequantizeLinear read in quantized form."""
    return sum(weights_of_scales(model).values())


def weights_of_scales(model: onnx.ModelProto) -> dict[str, int]:
    """For each tensor of quantization scales, by name, the number of weights that it scales."""
    codes = {tensor.name: math.prod(tensor.dims) for tensor in model.graph.initializer}
    sizes: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            attributes = node_attributes(node)
            sizes[node.input[2]] = attributes["K"] * attributes["N"]
        elif is_standard(node, "DequantizeLinear") and node.input[0] in codes:
            sizes[node.input[1]] = codes[node.input[0]]
    return sizes


def materialise(model: onnx.ModelProto, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Values of parameters, then running statistics, then tensors of ``exported.merged``, by name.

    Values that the file lacks are drawn with ``seed``, from 0 to 2**64 - 1; equal seeds give equal
    values. Raises CapabilityError if memory is insufficient.
    """
    separate = separated(model)
    stored = {tensor.name: tensor for tensor in separate.graph.initializer}
    every = (each for file in (model, separate) for each in (*parameters(file), *state(file)))
    return {
        name: onnx.numpy_helper.to_array(stored[name])
        if parameter.initial is None
        else _first_value(parameter, parameter.initial, seed)
        for name, parameter in {each.name: each for each in every}.items()
    }


def _first_value(parameter: Parameter, initial: Initial, seed: int) -> NDArray[Any]:
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(parameter.elem_type))
    try:
        return draw(initial, parameter.shape, dtype, seed)
    except MemoryError:
        needed_bytes = math.prod(parameter.shape) * dtype.itemsize
        raise CapabilityError(
            f"parameter {parameter.name!r}: expected {needed_bytes} bytes of memory; "
            "this machine does not have so much free memory"
        ) from None


def _stored(tensor: onnx.TensorProto) -> Parameter:
    return Parameter(tensor.name, tuple(tensor.dims), tensor.data_type, None)


def _listed(
    model: onnx.ModelProto, key: str, listed: Mapping[str, Initial]
) -> tuple[Parameter, ...]:
    fed = [_data_input(value) for value in model.graph.input if value.name in listed]
    missing = set(listed) - {value.name for value in fed}
    if missing:
        raise ModelError(f"{key}: no graph input is called {min(missing)!r}")
    ambiguous = set(listed) & {tensor.name for tensor in model.graph.initializer}
    if ambiguous:
        raise ModelError(
            f"{key}: {min(ambiguous)!r} also has an initializer; expected only one of them"
        )
    return tuple(_weightless(value, listed[value.name]) for value in fed)


def _weightless(value: DataInput, initial: Initial) -> Parameter:
    shape = tuple(size for size in value.shape if isinstance(size, int))
    if shape != value.shape or value.elem_type not in FLOAT_TYPES:
        kind = onnx.TensorProto.DataType.Name(value.elem_type)
        raise ModelError(
            f"parameter {value.name!r}: expected floats of a fixed shape, "
            f"got {kind} of shape {list(value.shape)}"
        )
    return Parameter(value.name, shape, value.elem_type, initial)


def _data_input(value: onnx.ValueInfoProto) -> DataInput:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        raise ModelError(f"input {value.name!r}: expected a tensor with declared dimensions")
    shape = tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in tensor.shape.dim
    )
    return DataInput(value.name, shape, tensor.elem_type)


# Input indices of BatchNormalization: running mean and running variance.
STATISTICS = (3, 4)


def running_statistics(model: onnx.ModelProto) -> frozenset[str]:
    """Names of the tensors that nodes read only as running mean or variance of BatchNormalization.

    Nodes may read the tensor through Identity: exporters store only one of several equal tensors.
    """
    graph = (inline_functions(model) if model.functions else model).graph
    nodes = list(nested_nodes(graph.node))
    if not any(is_standard(node, "BatchNormalization") for node in nodes):
        return frozenset()
    origin = origins(graph.node)
    statistics: set[str] = set()
    outputs = {origin.get(value.name, value.name) for value in graph.output}
    for node in nodes:
        if is_standard(node, "Identity"):
            continue
        for index, name in enumerate(node.input):
            is_statistic = is_standard(node, "BatchNormalization") and index in STATISTICS
            (statistics if is_statistic else outputs).add(origin.get(name, name))
    return frozenset(statistics - outputs)


def origins(
    nodes: Iterable[onnx.NodeProto], op_types: Iterable[str] = ("Identity",)
) -> dict[str, str]:
    """Map the output of each node with an operator in ``op_types`` to its origin.

    The origin is the node's first input; in a chain of such nodes, that of the chain's first node.
    """
    sources: dict[str, str] = {}
    for node in nodes:
        if is_standard(node, *op_types):
            sources[node.output[0]] = sources.get(node.input[0], node.input[0])
    return sources
