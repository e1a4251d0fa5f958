"""Bind symbolic dimensions to sizes, so that every tensor of the graph has a static shape."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import onnx

from onnxstep.errors import ModelError, ModelWarning
from onnxstep.graphs.choices import unknown_name
from onnxstep.graphs.folding import fold_constants, misfit
from onnxstep.graphs.inference import infer_shapes
from onnxstep.graphs.initial import listed_parameters, listed_state
from onnxstep.graphs.nodes import copied, live_nodes, node_attributes, node_label, reads, set_nodes
from onnxstep.graphs.parameters import untrained
from onnxstep.graphs.tensors import (
    FLOAT_TYPES,
    MAX_ELEMENTS,
    check_declarations,
    declared_values,
    graphs,
    keep_declarations,
    static_shape,
    value_types,
    without_shapes,
)

# Half a gibibyte of float32 numbers.
MAX_CONSTANT_ELEMENTS = 2**27
# Limits of arithmetic on constants: some seconds of computation, enough to unpack quantized
# weights.
_MAX_CONSTANT_WORK, _MAX_WORK_PER_STORED = 2**30, 16
_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "MatMulInteger"})


class UnknownShapeError(ModelError):
    """The shape of a value depends on data, or onnx does not know the value's operator.

    ``domain`` and ``op_type`` name the operator; "" is ONNX's default domain.
    """

    def __init__(self, message: str, domain: str, op_type: str) -> None:
        super().__init__(message)
        self.domain, self.op_type = domain, op_type


def symbolic_dimensions(model: onnx.ModelProto) -> tuple[str, ...]:
    """Names of the inputs' symbolic dimensions, each once, in the order of the inputs.

    A dimension with neither name nor size is called ``input[axis]``.
    """
    return tuple(dict.fromkeys(name for name, _dim in _open_input_dimensions(model)))


def bind_dimensions(
    model: onnx.ModelProto,
    sizes: Mapping[str, int],
    varying: Collection[str] = (),
    *,
    plain_sequences: bool = False,
) -> onnx.ModelProto:
    """Copy the model with a static shape for every tensor of the main graph.

    ``sizes`` has a size for each of ``symbolic_dimensions(model)``. Inputs with a dimension of size
    0 become empty initializers, which callers need not feed. A dimension that all data inputs have
    must not be 0. ``varying`` names stored tensors that are trained or differentiated, and so must
    not be folded into constants. ``fold_constants`` explains ``plain_sequences``. Raises ModelError
    for unknown names, missing or invalid sizes, contradicting shapes, and shapes that depend on
    data.
    """
    _check_sizes(model, sizes)
    bound = copied(model)
    _remove_unused_nodes(bound.graph)
    _write_sizes(bound, sizes)
    _make_empty_inputs_initializers(bound.graph)
    fixed = untrained(bound).keys() - set(varying)
    fold = partial(fold_constants, fixed=fixed, plain_sequences=plain_sequences)
    try:
        inferred = _infer_shapes(fold(bound))
    except ModelError as error:
        inferred = _infer_without_declared_shapes(bound, fold, error)
    _require_positive_sizes(inferred)
    check_declarations(inferred)
    _check_static(inferred)
    _require_small_constants(inferred.graph)
    return inferred


def _open_input_dimensions(
    model: onnx.ModelProto,
) -> Iterator[tuple[str, onnx.TensorShapeProto.Dimension]]:
    stored = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in stored:
            continue
        for name, dim in zip(_dimensions(value), value.type.tensor_type.shape.dim, strict=True):
            if not dim.HasField("dim_value"):
                yield name, dim


def _check_sizes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    names = symbolic_dimensions(model)
    weights = (listed_parameters(model) or {}).keys() | listed_state(model)
    fed = [value for value in model.graph.input if value.name not in weights]
    for name, size in sizes.items():
        if name not in names:
            raise unknown_name("dimension", name, names)
        least = int(all(name in _dimensions(value) for value in fed))
        if type(size) is not int or not least <= size <= MAX_ELEMENTS:
            raise ModelError(f"dimension {name!r}: expected a positive integer, got {size!r}")
    missing = [name for name in names if name not in sizes]
    if missing:
        example = {name: sizes.get(name, 32) for name in names}
        raise ModelError(
            f"dimensions without a size: {', '.join(map(repr, missing))}; bind them, for example "
            f"{example}"
        )


def _dimensions(value: onnx.ValueInfoProto) -> list[str]:
    dimensions = enumerate(value.type.tensor_type.shape.dim)
    return [dim.dim_param or f"{value.name}[{axis}]" for axis, dim in dimensions]


def _make_empty_inputs_initializers(graph: onnx.GraphProto) -> None:
    # Callers need not feed initializers.
    for value in [value for value in graph.input if 0 in (static_shape(value.type) or ())]:
        kind = value.type.tensor_type.elem_type
        shape = static_shape(value.type) or ()
        graph.input.remove(value)
        graph.initializer.append(onnx.helper.make_tensor(value.name, kind, shape, b"", raw=True))


def _write_sizes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    """Write ``sizes`` into all declarations, also in nested graphs.

    Names without a size, such as ``floor(height/2 - 1/2) + 1``, are removed for shape inference.
    """
    for name, dim in _open_input_dimensions(model):
        dim.dim_value = sizes[name]
    for graph in graphs(model):
        for value in declared_values(graph):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
                elif dim.HasField("dim_param"):
                    dim.ClearField("dim_param")


def _remove_unused_nodes(graph: onnx.GraphProto) -> None:
    """Remove nodes that no output needs, and declarations of values that no node computes."""
    set_nodes(graph, live_nodes(graph.node, [value.name for value in graph.output]))
    yielded = {name for node in graph.node for name in node.output}
    keep_declarations(graph, [value for value in graph.value_info if value.name in yielded])


def _infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Infer shapes without data propagation: with it, onnx 1.23.2 stores tensors of any length."""
    try:
        return infer_shapes(model, strict=True)
    except ModelError as error:
        where = misfit(model) or _node_label_in_error(str(error), model)
        raise ModelError(
            f"{f'{where}: ' if where else ''}{error}; bind other sizes, or export the model again "
            "with these"
        ) from None


def _node_label_in_error(error: str, model: onnx.ModelProto) -> str | None:
    """Label of the node whose operator onnx's ``error`` names; None unless only one node has it."""
    operator = re.search(r"op_type:\s*(\w+)", error)
    nodes = [node for node in model.graph.node if operator and node.op_type == operator[1]]
    return f"node {nodes[0].name or nodes[0].output[0]!r}" if len(nodes) == 1 else None


def _infer_without_declared_shapes(
    model: onnx.ModelProto, fold: Callable[[onnx.ModelProto], onnx.ModelProto], error: ModelError
) -> onnx.ModelProto:
    """Infer shapes without the declared ones, and warn of differences, as ONNX Runtime does.

    If this fails, raises ``error``, which the inference with the declared shapes raised.
    """
    before = {v.name: static_shape(v.type) for v in [*model.graph.value_info, *model.graph.output]}
    try:
        inferred = _infer_shapes(fold(without_shapes(model)))
    except ModelError:
        raise error from None
    after = {value.name: static_shape(value.type) for value in declared_values(inferred.graph)}
    wrong = [name for name, shape in before.items() if shape and shape != after.get(name)]
    if wrong:
        name = wrong[0]
        warnings.warn(
            f"value {name!r}: declared as {before[name]}, computed as {after.get(name)}; the "
            f"computed shape is used, here and for {len(wrong) - 1} other values",
            ModelWarning,
            stacklevel=3,
        )
    return inferred


def _require_positive_sizes(model: onnx.ModelProto) -> None:
    """Raise ModelError for a negative size, which onnx infers if a window exceeds its input."""
    sizes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in declared_values(model.graph)
    }
    for node in model.graph.node:
        for name in node.output:
            if min(sizes.get(name) or [0]) < 0:
                raise ModelError(
                    f"node {node.name or name!r} ({node.op_type}): its output {name!r} would have "
                    f"the shape {sizes[name]}: its input {node.input[0]!r} of shape "
                    f"{sizes.get(node.input[0])} is too short; bind larger sizes"
                )


def _check_static(model: onnx.ModelProto) -> None:
    types = {value.name: value.type for value in declared_values(model.graph)}
    for node in model.graph.node:
        for name in filter(None, node.output):
            if name not in types or not _has_known_sizes(types[name]):
                raise _unknown_shape(node, name)


def _unknown_shape(node: onnx.NodeProto, name: str) -> UnknownShapeError:
    domain = "" if node.domain == "ai.onnx" else node.domain
    why = (
        "depends on data or cannot be inferred; export the model with fixed shapes, or cut the "
        "graph before it"
    )
    if not any((s.domain, s.name) == (domain, node.op_type) for s in onnx.defs.get_all_schemas()):
        why = "is not known: onnx has no such operator; export it as operators of ONNX"
    return UnknownShapeError(
        f"node {node.name or node.output[0]!r}: operator {domain or 'ai.onnx'}::{node.op_type}: "
        f"expected a shape known before the run; the shape of output {name!r} {why}",
        domain,
        node.op_type,
    )


def _require_small_constants(graph: onnx.GraphProto) -> None:
    """Raise ModelError if nodes that read only constants need a huge tensor or much arithmetic."""
    shapes = {name: static_shape(kind) or () for name, kind in value_types(graph).items()}
    moving = {value.name for value in graph.input}
    moving |= {tensor.name for tensor in graph.initializer if tensor.data_type in FLOAT_TYPES}
    stored = sum(math.prod(tensor.dims) for tensor in graph.initializer)
    room = _MAX_CONSTANT_WORK + _MAX_WORK_PER_STORED * stored
    for node in graph.node:
        if not moving.isdisjoint(reads(node)):
            moving.update(node.output)
            continue
        for name in node.output:
            if (size := math.prod(shapes.get(name, ()))) > MAX_CONSTANT_ELEMENTS:
                raise ModelError(
                    f"tensor {name!r}: expected at most 2**27 elements, because it depends on no "
                    f"input; {node.op_type} makes {size}"
                )
        room -= _estimated_operations(node, shapes)
        if room < 0:
            raise ModelError(
                f"{node_label(node)}: expected at most 2**30 operations on constants before a run; "
                "this and the nodes before it do more: store their result in the file"
            )


def _estimated_operations(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Estimated arithmetic operations of a node; too high for an Einsum with shared indices."""
    read, written = ([math.prod(shapes.get(n, ())) for n in ns] for ns in (node.input, node.output))
    work = sum(read) + sum(written)
    if node.op_type == "Einsum":
        return work + math.prod(read)
    if node.op_type in _PRODUCTS:
        # For matrices [m, n], [n, p] and [m, p] the product of the three sizes is (m n p)².
        return work + math.isqrt(math.prod(read[:2]) * sum(written))
    window: Sequence[int] = node_attributes(node).get("kernel_shape", ())
    return max(work, math.prod(window) * sum(written))


def _has_known_sizes(kind: onnx.TypeProto) -> bool:
    """Whether all sizes of a tensor are known; True for other values, such as sequences."""
    if not kind.HasField("tensor_type"):
        return kind.WhichOneof("value") is not None
    return static_shape(kind) is not None
