"""Constant folding: replace nodes that depend only on shapes and constants by constants."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import defs, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from onnxstep.errors import ModelWarning
from onnxstep.graphs import contrib
from onnxstep.graphs.functions import branch_nodes
from onnxstep.graphs.inference import NodeInference, evaluation_key
from onnxstep.graphs.misinferred import is_misinferred, rewrite_misinferred
from onnxstep.graphs.nodes import (
    copied,
    default_opset,
    is_standard,
    live_nodes,
    node_label,
    set_nodes,
)
from onnxstep.graphs.sequences import MAKERS, READERS, behind_splits, note_sequence, plain_reader
from onnxstep.graphs.tensors import FLOAT_TYPES, static_shape, value_types

Array = NDArray[Any]
# Folded constants are shapes, indices and small masks. Larger constants would enlarge the file too
# much for the time that they save.
MAX_FOLDED_ELEMENTS = 4096
# Operators on shapes, indices and masks whose time is proportional to their inputs and outputs.
# Einsum, convolutions and text patterns are excluded: a file could make them run for hours.
_FOLDED = frozenset(
    {
        "Abs", "Add", "And", "ArgMax", "ArgMin", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "Cast",
        "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant", "ConstantOfShape", "Cos",
        "CumSum", "DequantizeLinear", "Div", "Equal", "Exp", "Expand", "EyeLike", "Flatten",
        "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity",
        "IsInf", "IsNaN", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mod", "Mul", "Neg",
        "NonZero", "Not", "OneHot", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceMax",
        "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round", "ScatterElements",
        "ScatterND", "Sign", "Sin", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tile",
        "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where", "Xor",
    }
)  # fmt: skip
# Operators whose output size depends on values, but is at most the rank times the input's size.
_BOUNDED_BY_INPUT = frozenset({"NonZero", "Unique", "Compress"})


def fold_constants(
    model: onnx.ModelProto, fixed: Collection[str] = (), *, plain_sequences: bool = False
) -> onnx.ModelProto:
    """Copy a model with bound dimensions; nodes with constant results become Constant nodes.

    ``fixed`` names the float initializers that are constants. With ``plain_sequences``, nodes read
    the tensors of a sequence instead of the sequence. If onnx infers a wrong shape for a node,
    equivalent nodes replace it. A node that cannot be evaluated stays, without an error.
    """
    answer = copied(model)
    values = _TypesAndConstants(answer, fixed, plain_sequences=plain_sequences)
    outputs = {value.name for value in answer.graph.output}
    nodes = list(_folded_nodes(answer.graph.node, values, outputs))
    if plain_sequences:
        nodes = list(behind_splits(live_nodes(nodes, outputs), values.copies))
    set_nodes(answer.graph, nodes)
    for value in [*answer.graph.value_info, *answer.graph.output] if values.has_corrections else ():
        if static_shape(values.types.get(value.name)) is not None:
            value.type.CopyFrom(values.types[value.name])
    _declare_computed_types(answer.graph, values.contributed)
    return answer


def misfit(model: onnx.ModelProto) -> str | None:
    """Describe the first node whose inputs ONNX refuses, with their shapes; None if all fit."""
    values = _TypesAndConstants(model, ())
    for node in model.graph.node:
        if values.store_output_types(node) is not None:
            shapes = (f"{n}{list(static_shape(values.types[n]) or [])}" for n in node.input if n)
            return f"{node_label(node)} of {', '.join(shapes)}"
        values.arrays.update(values.constant_outputs(node) or {})
    return None


def _declare_computed_types(
    graph: onnx.GraphProto, computed_types: Mapping[str, onnx.TypeProto]
) -> None:
    declared = {value.name: value for value in [*graph.value_info, *graph.output]}
    for name, kind in computed_types.items():
        value = declared[name] if name in declared else graph.value_info.add(name=name)
        before, after = static_shape(value.type), static_shape(kind)
        if before is not None and before != after:
            warnings.warn(
                f"value {name!r}: declared as {before}, computed as {after}; the computed "
                "shape is used",
                ModelWarning,
                stacklevel=2,
            )
        if before != after:
            value.type.CopyFrom(kind)


def _folded_nodes(
    nodes: Iterable[onnx.NodeProto], values: _TypesAndConstants, outputs: set[str]
) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        replacement = _replacement_nodes(node, values, outputs)
        if replacement is not None:
            yield from replacement
        else:
            for part in values.rewrite_if_misinferred(node):
                yield _replaced(part, values, outputs)


def _replacement_nodes(
    node: onnx.NodeProto, values: _TypesAndConstants, outputs: set[str]
) -> list[onnx.NodeProto] | None:
    """Nodes that replace an If or (with ``plain_sequences``) a sequence's node; None if impossible.

    A node that makes a sequence stays; if it splits a tensor, nodes that compute the parts follow.
    """

    def fold(nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
        return list(_folded_nodes(nodes, values, outputs))

    if is_standard(node, "If"):
        branch = values.nodes_of_branch(node)
        return fold(branch) if branch is not None else None
    if not values.plain_sequences or not is_standard(node, *MAKERS, *READERS):
        return None
    try:
        if node.op_type in MAKERS:
            # Other nodes may still read the sequence.
            return [node, *fold(note_sequence(node, values.sequences, values.types, values.arrays))]
        values.copies.update(node.output if node.op_type == "SequenceAt" else ())
        return fold(plain_reader(node, values.sequences, values.arrays))
    except (LookupError, ValueError):
        return None  # The sequence is unknown or unsuitable; shape inference reports the error.


def _replaced(
    node: onnx.NodeProto, values: _TypesAndConstants, outputs: set[str]
) -> onnx.NodeProto:
    values.store_output_types(node)
    arrays = values.constant_outputs(node)
    if arrays is None:
        return node
    values.store_arrays(arrays)
    if len(arrays) != 1 or not outputs.isdisjoint(node.output):
        return node
    [(name, array)] = arrays.items()
    return helper.make_node(
        "Constant", [], [name], name=node.name, value=numpy_helper.from_array(array, name)
    )


class _TypesAndConstants:
    def __init__(
        self, model: onnx.ModelProto, fixed: Collection[str], *, plain_sequences: bool = False
    ) -> None:
        graph = model.graph
        self._inference = NodeInference(model.opset_import, model.ir_version)
        self.has_corrections = False
        self._opset = default_opset(model)
        self._inlined_branches = 0  # makes the names of the branches' values unique
        self.plain_sequences = plain_sequences
        self.sequences: dict[str, list[str]] = {}  # names of the tensors of each sequence
        self.copies: set[str] = set()  # outputs of SequenceAt nodes
        self.contributed: dict[str, onnx.TypeProto] = {}
        self._results: dict[Hashable, Sequence[Array] | None] = {}
        self.types = value_types(graph)
        self.arrays: dict[str, Array] = {
            t.name: numpy_helper.to_array(t)
            for t in graph.initializer
            if t.data_type not in FLOAT_TYPES or t.name in fixed
            if math.prod(t.dims) <= MAX_FOLDED_ELEMENTS
        }

    def store_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Store computed values and their shapes; onnx cannot infer the shapes for NonZero."""
        self.arrays.update(arrays)
        for name in arrays.keys() & self.types.keys():
            kind = self.types[name].tensor_type.elem_type
            self.types[name] = helper.make_tensor_type_proto(kind, arrays[name].shape)

    def nodes_of_branch(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto] | None:
        """The nodes of the branch that an If takes; None if its condition is not constant."""
        condition = self.arrays.get(node.input[0])
        if condition is None or condition.size != 1:
            return None
        self._inlined_branches += 1
        return branch_nodes(node, bool(condition.item()), self._inlined_branches)

    def rewrite_if_misinferred(self, node: onnx.NodeProto) -> Sequence[onnx.NodeProto]:
        if not is_misinferred(node, self._opset):
            return [node]
        input_shapes = [static_shape(self.types.get(name)) for name in filter(None, node.input)]
        shapes = [shape for shape in input_shapes if shape is not None]
        if len(shapes) < len(input_shapes):
            return [node]
        try:
            parts = rewrite_misinferred(node, shapes)
        except (ArithmeticError, LookupError, ValueError):
            return [node]  # The shapes or attributes do not fit; shape inference reports the error.
        self.has_corrections |= parts != [node]
        return parts

    def store_output_types(self, node: onnx.NodeProto) -> Exception | None:
        """Infer and store the types of the node's outputs; return onnx's error if onnx raises one.

        Nothing is stored if the type of an input is unknown.
        """
        if any(name and name not in self.types for name in node.input):
            return None
        try:
            kinds = self._inference.output_types(node, self.types, self.arrays)
        except (defs.SchemaError, shape_inference.InferenceError) as error:
            return error
        known = {n: kind for n, kind in zip(node.output, kinds, strict=True) if kind is not None}
        self.types |= known
        if contrib.is_known(node):
            self.contributed |= known
        return None

    def constant_outputs(self, node: onnx.NodeProto) -> Mapping[str, Array] | None:
        """Constant outputs by name; None if they vary, are too large, or have unknown sizes."""
        of_shape = node.op_type in ("Shape", "Size")
        feeds = {name: self.arrays[name] for name in node.input if name in self.arrays}
        if is_standard(node, "CastLike") and node.input[1] in self.types:
            kind = self.types[node.input[1]].tensor_type.elem_type
            feeds[node.input[1]] = np.zeros((), helper.tensor_dtype_to_np_dtype(kind))
        constant = node.op_type in _FOLDED and feeds.keys() >= set(filter(None, node.input))
        if node.domain or not (of_shape or constant):
            return None
        bounds = node.input if node.op_type in _BOUNDED_BY_INPUT else node.output
        if not all(map(self._is_small, filter(None, bounds))):
            return None
        return (
            self._output_of_shape_node(node) if of_shape else self._evaluate_with_cache(node, feeds)
        )

    def _is_small(self, name: str) -> bool:
        shape = static_shape(self.types.get(name))
        return shape is not None and math.prod(shape) <= MAX_FOLDED_ELEMENTS

    def _output_of_shape_node(self, node: onnx.NodeProto) -> Mapping[str, Array] | None:
        shape = static_shape(self.types.get(node.input[0]))
        if shape is None:
            return None
        if node.op_type == "Size":
            return {node.output[0]: np.array(math.prod(shape), dtype=np.int64)}
        limits = {entry.name: entry.i for entry in node.attribute}
        part = shape[slice(limits.get("start"), limits.get("end"))]
        return {node.output[0]: np.array(part, dtype=np.int64)}

    def _evaluate_with_cache(
        self, node: onnx.NodeProto, feeds: Mapping[str, Array]
    ) -> Mapping[str, Array] | None:
        key = evaluation_key(node, feeds)
        if key not in self._results:
            self._results[key] = self._run(node, feeds)
        values = self._results[key]
        return None if values is None else dict(zip(filter(None, node.output), values, strict=True))

    def _run(self, node: onnx.NodeProto, feeds: Mapping[str, Array]) -> Sequence[Array] | None:
        model = self._inference.model_of(
            node, [helper.make_empty_tensor_value_info(name) for name in feeds]
        )
        try:
            with np.errstate(all="ignore"):
                values = ReferenceEvaluator(model).run(None, dict(feeds))
        except Exception:  # the runtime computes nodes that the evaluator cannot
            return None
        return [np.asarray(value) for value in values]
