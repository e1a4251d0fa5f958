"""Tensors of a model, including nested graphs: their types, shapes and stored data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import onnx
from onnx import TensorProto

from onnxstep.errors import ModelError
from onnxstep.graphs.nodes import all_nodes, copied

# Four tebibytes of float32, more than any machine has: a larger number is a mistake or an attack.
MAX_ELEMENTS = 2**40
# Float types of trainable tensors; the half types are too narrow for sums of many terms.
FLOAT_TYPES = frozenset(
    {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
)
HALF_TYPES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
_MAX_MESSAGE = 300
_ELEM_TYPES = frozenset(onnx.TensorProto.DataType.values())


def one_line(error: BaseException) -> str:
    """The message of a library's error on one line, cut to 300 characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "…"


def graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the main graph and every graph nested in attributes of nodes and functions."""
    yield model.graph
    for attribute in _attributes(model):
        # In protobuf, reading a missing graph field would create an empty graph.
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _attributes(model: onnx.ModelProto) -> Iterator[onnx.AttributeProto]:
    """Yield every attribute of every node, including those of nested graphs and functions."""
    for node in all_nodes(model):
        yield from node.attribute
    for function in model.functions:
        yield from function.attribute_proto


def stored_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor with values in the file: initializers and attributes, at any depth."""
    for graph in graphs(model):
        yield from graph.initializer
        yield from _dense(graph.sparse_initializer)
    for attribute in _attributes(model):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from _dense([attribute.sparse_tensor])
        yield from _dense(attribute.sparse_tensors)


def _dense(tensors: Iterable[onnx.SparseTensorProto]) -> Iterator[onnx.TensorProto]:
    for tensor in tensors:
        yield tensor.values
        yield tensor.indices


def declared_values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    """Yield the declarations of a graph's inputs, outputs and intermediate values."""
    yield from graph.input
    yield from graph.output
    yield from graph.value_info


def keep_declarations(graph: onnx.GraphProto, declared: Sequence[onnx.ValueInfoProto]) -> None:
    """Remove the graph's ``value_info`` entries that are not in ``declared``, in place."""
    if len(declared) < len(graph.value_info):
        del graph.value_info[:]
        graph.value_info.extend(declared)


def value_types(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """Types of all values of a graph that are declared or stored, by name."""
    types = {value.name: value.type for value in declared_values(graph)}
    return types | {
        tensor.name: onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        for tensor in graph.initializer
    }


def static_shape(kind: onnx.TypeProto | None) -> tuple[int, ...] | None:
    """The shape of a tensor type; None if the type declares no shape or not every size."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    sizes = []
    for dim in kind.tensor_type.shape.dim:
        if not dim.HasField("dim_value"):
            return None
        sizes.append(dim.dim_value)
    return tuple(sizes)


def without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of the model without declared shapes, except those of inputs."""
    plain = copied(model)
    for value in [*plain.graph.value_info, *plain.graph.output]:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return plain


def check_tensors(model: onnx.ModelProto) -> None:
    """Raise ModelError for stored data that do not fill their shape, and for impossible shapes."""
    for tensor in stored_tensors(model):
        _check_shape(tensor.name, tensor.dims)
        _check_data(tensor)
    check_declarations(model)


def check_declarations(model: onnx.ModelProto) -> None:
    """Raise ModelError for a type that ONNX lacks, a negative size, or more than 2**40 elements."""
    for graph in graphs(model):
        for value in declared_values(graph):
            tensor = value.type.tensor_type
            if tensor.elem_type not in _ELEM_TYPES:
                raise ModelError(
                    f"value {value.name!r}: expected a data type of ONNX, got {tensor.elem_type}"
                )
            dims = tensor.shape.dim
            _check_shape(value.name, [dim.dim_value for dim in dims if dim.HasField("dim_value")])


def _check_shape(name: str, sizes: Iterable[int]) -> None:
    shape = tuple(sizes)
    if min(shape, default=0) < 0:
        raise ModelError(f"tensor {name!r}: expected sizes of at least 0, got {list(shape)}")
    if math.prod(filter(None, shape)) > MAX_ELEMENTS:
        raise ModelError(
            f"tensor {name!r}: expected at most 2**40 elements, got the shape {list(shape)}"
        )


def _check_data(tensor: onnx.TensorProto) -> None:
    try:
        onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise ModelError(
            f"tensor {tensor.name!r}: expected data that fills the shape {list(tensor.dims)}; "
            f"{one_line(error)}; export the model again"
        ) from None
