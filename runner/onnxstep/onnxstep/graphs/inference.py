"""Type and shape inference by onnx, after checks for nodes that crash onnx.

Such nodes end the process, or send onnx 1.23 into an endless loop that ignores signals. The script
tests/fuzzing.py searches for further ones.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import defs, helper, numpy_helper, shape_inference

from onnxstep.errors import ModelError
from onnxstep.graphs import contrib
from onnxstep.graphs.nodes import (
    DEFAULT_DOMAINS,
    NESTED,
    all_nodes,
    default_opset,
    nested_nodes,
    node_attributes,
    node_label,
)
from onnxstep.graphs.tensors import FLOAT_TYPES, one_line

# Largest number of elements of a constant that inference reads, such as a shape. A constant with a
# number for each output of a node may be longer.
MAX_SHAPE_CONSTANT = 64
# Output types are cached for nodes of at most this many bytes; a Constant may have gigabytes.
_MOST_BYTES_OF_CACHED_NODE = 2048
_TERM = rb"[A-Za-z ]*(?:\.\.\.[A-Za-z ]*)?"
_EQUATION = re.compile(rb"%b(?:,%b)*(?:->%b)?" % (_TERM, _TERM, _TERM))
# A product with weights of few bits reads the other factor, the weights and their scales.
_FEW_BITS_INPUTS = 3
# onnx stores an axis in a C++ int.
_AXES = range(-(2**31), 2**31)
Types = Mapping[str, onnx.TypeProto]


def infer_shapes(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """Copy of a model with the types and shapes that onnx infers.

    Raises ModelError for types that contradict the declared types, and for nodes that crash onnx.
    With ``strict``, also raises ModelError for nodes that do not fit their inputs.
    """
    check_nodes(model)
    try:
        return shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict)
    except (shape_inference.InferenceError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(f"shapes or types contradict each other: {one_line(error)}") from None


class NodeInference:
    """Infers the types of the outputs of nodes of one graph; equal nodes are inferred only once."""

    def __init__(self, opset_imports: Iterable[onnx.OperatorSetIdProto], ir_version: int) -> None:
        self._imports = list(opset_imports)
        self.versions = {entry.domain: entry.version for entry in self._imports}
        self._ir_version = ir_version
        self._inferred: dict[Hashable, Sequence[onnx.TypeProto | None]] = {}

    def schema(self, node: onnx.NodeProto) -> defs.OpSchema:
        """ONNX's schema of a node's operator; raises SchemaError if the graph's opset lacks it."""
        return defs.get_schema(node.op_type, self.versions.get(node.domain) or 1, node.domain)

    def output_types(
        self, node: onnx.NodeProto, types: Types, constants: Mapping[str, NDArray[Any]]
    ) -> Sequence[onnx.TypeProto | None]:
        """The types of the node's outputs; None for an omitted output and for an unknown type.

        ``constants`` has arrays of constant inputs. Raises SchemaError for an unknown operator,
        InferenceError if the inputs do not fit, and ModelError for a node that crashes onnx.
        """
        longest = max(MAX_SHAPE_CONSTANT, len(node.output))
        operands = {name: types[name] for name in node.input if name}
        arrays = {name: constants[name] for name in operands if name in constants}
        arrays = {name: array for name, array in arrays.items() if array.size <= longest}
        key = _cache_key(node, operands, arrays)
        if key not in self._inferred:
            inferred = self._infer(node, operands, arrays)
            kinds = [inferred.get(name) for name in node.output]
            if key is None:
                return kinds
            self._inferred[key] = kinds
        return self._inferred[key]

    def _infer(
        self, node: onnx.NodeProto, operands: Types, arrays: Mapping[str, NDArray[Any]]
    ) -> Types:
        if contrib.is_known(node):
            return contrib.output_types(node, operands)
        _check([node])
        schema = self.schema(node)
        try:
            if not schema.has_type_and_shape_inference_function:
                return self._infer_from_body(node, operands)
            data = {name: numpy_helper.from_array(array, name) for name, array in arrays.items()}
            return shape_inference.infer_node_outputs(
                schema, node, {**operands}, data, None, self._imports, self._ir_version
            )
        except (onnx.checker.ValidationError, ValueError) as error:
            raise shape_inference.InferenceError(str(error)) from None

    def model_of(
        self, node: onnx.NodeProto, inputs: Sequence[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """A model of this node alone."""
        outputs = [helper.make_empty_tensor_value_info(name) for name in filter(None, node.output)]
        graph = helper.make_graph([node], "node", inputs, outputs)
        return helper.make_model(graph, opset_imports=self._imports, ir_version=self._ir_version)

    def _infer_from_body(self, node: onnx.NodeProto, operands: Types) -> Types:
        """Infer the types from the function body of the node's operator."""
        inputs = [helper.make_value_info(name, kind) for name, kind in operands.items()]
        model = self.model_of(node, inputs)
        inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        return {value.name: value.type for value in inferred.graph.output}


def _cache_key(
    node: onnx.NodeProto, operands: Types, arrays: Mapping[str, NDArray[Any]]
) -> Hashable:
    """What determines the output types of a node; None for a long node, or one with subgraphs."""
    if node.ByteSize() > _MOST_BYTES_OF_CACHED_NODE or node.op_type in NESTED:
        return None
    kinds = tuple(name and operands[name].SerializeToString() for name in node.input)
    return kinds, evaluation_key(node, arrays)


def evaluation_key(node: onnx.NodeProto, arrays: Mapping[str, NDArray[Any]]) -> Hashable:
    """A key for a cache that is equal for equal nodes with equal constant inputs."""
    constants = (arrays.get(name) for name in node.input)
    return (
        node.op_type,
        node.domain,
        tuple(map(bool, node.output)),
        tuple(attribute.SerializeToString() for attribute in node.attribute),
        tuple(None if x is None else (x.dtype.str, x.shape, x.tobytes()) for x in constants),
    )


def check_nodes(model: onnx.ModelProto) -> None:
    """Raise ModelError if the model, a nested graph or a function has a node that crashes onnx."""
    _check(all_nodes(model))


def require_operators(model: onnx.ModelProto) -> None:
    """Raise ModelError if a node's operator does not exist in the model's opset of ONNX."""
    opset = default_opset(model)
    if opset not in range(1, onnx.defs.onnx_opset_version() + 1):
        return  # The opset itself is unknown, so no operator is to blame.
    for node in nested_nodes(model.graph.node):
        if node.domain in DEFAULT_DOMAINS and not onnx.defs.has(node.op_type, opset, ""):
            raise ModelError(
                f"{node_label(node)}: opset {opset} of ONNX has no such operator; export the "
                "model again at a newer opset, or as other operators"
            )


def _check(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        if node.domain in (*DEFAULT_DOMAINS, contrib.DOMAIN) and node.op_type in _CHECKED:
            for fault in _CHECKED[node.op_type](node):
                raise ModelError(
                    f"{node_label(node)}: expected {fault}; correct the node, or export the model "
                    "again"
                )


def _einsum(node: onnx.NodeProto) -> Iterator[str]:
    for entry in node.attribute:
        if entry.name == "equation" and not _EQUATION.fullmatch(entry.s):
            yield (
                "an equation of letters, commas, one arrow and at most one ellipsis for each "
                f"operand, got {entry.s!r:.80}"
            )


def _gather_nd(node: onnx.NodeProto) -> Iterator[str]:
    axes = node_attributes(node).get("batch_dims", 0)
    if axes < 0:
        yield f"batch_dims of at least 0, got {axes}"


def _layer_normalization(node: onnx.NodeProto) -> Iterator[str]:
    attributes = node_attributes(node)
    if attributes.get("axis", -1) not in _AXES:
        yield f"an axis of its input, got {attributes['axis']}"
    if attributes.get("stash_type", onnx.TensorProto.FLOAT) not in FLOAT_TYPES:
        yield f"a float type as stash_type, such as 1 (float32), got {attributes['stash_type']}"


def _few_bits_matmul(node: onnx.NodeProto) -> Iterator[str]:
    if not node_attributes(node).keys() >= {"K", "N"} or len(node.input) < _FEW_BITS_INPUTS:
        yield "the attributes K and N, and weights and scales as inputs"


def _split(node: onnx.NodeProto) -> Iterator[str]:
    parts = node_attributes(node).get("num_outputs", len(node.output))
    if parts != len(node.output):
        yield f"as many outputs as num_outputs, {parts}, got {len(node.output)}"


_CHECKED = {
    "Einsum": _einsum,
    "GatherND": _gather_nd,
    "LayerNormalization": _layer_normalization,
    "MatMulNBits": _few_bits_matmul,
    "Split": _split,
}
