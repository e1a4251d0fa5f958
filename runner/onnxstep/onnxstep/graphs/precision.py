"""Convert a graph to half precision, for inference or for mixed-precision training.

Operators in ``WIDE``, or for training in ``WIDE_IN_TRAINING``, compute in fp32. So do sines and
cosines that depend on no float input of the graph, with all nodes before them. For bf16, operators
without a CUDA kernel for bf16 compute in fp32, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onnxstep.errors import ModelError
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.contrib import DOMAIN
from onnxstep.graphs.cuda_kernels import computes_in, schema_of, type_word
from onnxstep.graphs.nodes import constant_value, copied, live_nodes
from onnxstep.graphs.parameters import parameters, state
from onnxstep.graphs.tensors import declared_values

# Operators that stay fp32. Sums of many terms, powers and exponentials exceed fp16's maximum of
# 65504, and coordinates need more than 11 bits. Frameworks with autocasting keep similar operators
# in fp32.
WIDE = frozenset(
    {
        "CumSum", "Exp", "GridSample", "MeanVarianceNormalization", "Pow", "Range", "ReduceL2",
        "ReduceLogSumExp", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Resize", "Upsample",
    }
)  # fmt: skip
# For training also the operators that PyTorch's autocast keeps in fp32 (its page on torch.amp,
# "CUDA Ops that can autocast to float32"): normalisations, softmax, losses, logarithms and their
# inverses. Also all other means and norms, whose statistics and gradients are sums of many terms.
WIDE_IN_TRAINING = WIDE | {
    "Acos", "Asin", "Cosh", "CumProd", "GlobalAveragePool", "GlobalLpPool",
    "GroupNormalization", "InstanceNormalization", "LRN", "LayerNormalization", "Log", "LogSoftmax",
    "LpNormalization", "NegativeLogLikelihoodLoss", "RMSNormalization", "Reciprocal", "ReduceL1",
    "ReduceLogSum", "ReduceMean", "Sinh", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Sqrt",
    "Tan",
}  # fmt: skip
# ONNX Runtime's operators, without a schema in onnx, whose float inputs and outputs may all be half
# (ContribOperators.md). CUDA's attention with a cache supports only half types.
_CONTRIBUTED = frozenset(
    {
        "FastGelu", "FusedMatMul", "Gelu", "GroupQueryAttention", "MatMulNBits", "MoE",
        "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "TransposeMatMul",
    }
)  # fmt: skip
# Operators on large numbers: fp16 cannot represent all positions up to ten thousand.
_ANGULAR = frozenset({"Cos", "Sin"})


def allowed_inputs(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema | None, half: int
) -> list[bool]:
    """For each input, whether its node accepts ``half``; all False for an unknown operator."""
    return _half_allowed_flags(node, schema, half, "inputs", len(node.input))


def allowed_outputs(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema | None, half: int
) -> list[bool]:
    """For each output of the node, whether its operator can return the type ``half``."""
    return _half_allowed_flags(node, schema, half, "outputs", len(node.output))


def _half_allowed_flags(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema | None, half: int, side: str, count: int
) -> list[bool]:
    if schema is None:
        return [node.domain == DOMAIN and node.op_type in _CONTRIBUTED] * count
    types = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    if half == TensorProto.BFLOAT16 and not computes_in(schema, half):
        return [False] * count
    kinds = [types.get(formal.type_str, [formal.type_str]) for formal in getattr(schema, side)]
    flags = [f"tensor({type_word(half)})" in kind for kind in kinds]
    # The last formal parameter applies to all further inputs or outputs.
    return [bool(flags) and flags[min(place, len(flags) - 1)] for place in range(count)]


_FLOAT = TensorProto.FLOAT
# fp16 is IEEE 754 binary16; bf16 has 8 bits of significand and the exponents of fp32.
_LARGEST: dict[int, float] = {
    TensorProto.FLOAT16: 65504.0,
    TensorProto.BFLOAT16: (2 - 2.0**-7) * 2.0**127,
}
# Operators that read single rows of a stored fp32 table: casting the whole table would cost more.
_LOOKUPS = frozenset({"Gather"})
# Attributes that set the output's float type: by a type, or by a tensor.
_TYPE_ATTRIBUTES = frozenset({"dtype", "output_datatype", "output_dtype"})
_MADE_OF_TENSOR = frozenset({"Constant", "ConstantOfShape"})


def in_half_precision(
    model: onnx.ModelProto,
    elem_type: int,
    cache: Mapping[str, str] = {},
    scales: Collection[str] = (),
) -> onnx.ModelProto:
    """Convert a model with bound dimensions for inference in fp16 or bf16.

    Parameters, running statistics, ``scales`` of quantized weights and a decoder's cache become
    ``elem_type``. ``cache`` maps cache inputs to outputs. Other float inputs and outputs stay fp32.
    Constants beyond the type's range are clipped. Raises ModelError for branches or loops.
    """
    weights = {tensor.name for tensor in (*parameters(model), *state(model))}
    rewriting = _HalfPrecisionRewriting(model, elem_type, half_outputs={*cache.values()})
    return rewriting.rewritten(halved_inputs=weights | {*scales, *cache})


def in_mixed_precision(
    model: onnx.ModelProto, elem_type: int, masters: Collection[str]
) -> onnx.ModelProto:
    """Convert a model with bound dimensions for training in fp16 or bf16.

    ``masters`` names the weights and running statistics, which stay fp32; a step casts each of them
    once. Raises ModelError for branches or loops.
    """
    return _HalfPrecisionRewriting(model, elem_type, masters).rewritten()


class _HalfPrecisionRewriting:
    """Rewrites the nodes of a graph one by one in half precision, with casts between the types.

    ``masters`` names the fp32 initializers of a graph for training; None means inference.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        elem_type: int,
        masters: Collection[str] | None = None,
        half_outputs: Collection[str] = (),
    ) -> None:
        self._training, self._masters = masters is not None, masters or ()
        self._half_outputs = half_outputs
        self._nodes: list[onnx.NodeProto] = []
        self._half = elem_type
        self._suffix = "_" + type_word(elem_type)
        self._model = model
        self._versions = {opset.domain: opset.version for opset in model.opset_import}
        floats = {t.name: t for t in model.graph.initializer if t.data_type == _FLOAT}
        self._convertible_floats = {
            name: floats[name] for name in floats if name not in self._masters
        }
        self._outputs = {output.name for output in model.graph.output} - {*half_outputs}
        self._angles = _angles_without_float_inputs(model.graph)
        self._named = {node.name for node in model.graph.node}
        self._floats = set(floats) | {
            value.name
            for value in declared_values(model.graph)
            if value.type.tensor_type.elem_type == _FLOAT
        }
        self._names_by_type: dict[str, dict[int, str]] = {
            name: {_FLOAT: name} for name in floats if name in self._masters
        }
        self._converted_initializers: dict[str, onnx.TensorProto] = {}

    def rewritten(self, halved_inputs: Collection[str] = ()) -> onnx.ModelProto:
        """The model in half precision; the float inputs in ``halved_inputs`` become half, too."""
        half = copied(self._model)
        graph = half.graph
        del graph.node[:], graph.value_info[:], graph.initializer[:]
        self._declare_inputs_and_outputs(graph, halved_inputs)
        for node in self._model.graph.node:
            self._append_with_casts(node)
        self._cast_outputs_to_fp32()
        graph.node.extend(self._nodes)
        graph.initializer.extend(self._converted_initializers.values())
        tensors = self._model.graph.initializer
        graph.initializer.extend(t for t in tensors if t.name not in self._convertible_floats)
        return bind_dimensions(half, {})

    def _declare_inputs_and_outputs(
        self, graph: onnx.GraphProto, halved_inputs: Collection[str]
    ) -> None:
        for value in graph.input:
            if value.name in self._floats:
                kind = self._half if value.name in halved_inputs else _FLOAT
                value.type.tensor_type.elem_type = kind
                self._names_by_type[value.name] = {kind: value.name}
        for value in graph.output:
            if value.name in self._half_outputs:
                value.type.tensor_type.elem_type = self._half

    def _append_with_casts(self, node: onnx.NodeProto) -> None:
        if any(a.HasField("g") or a.graphs for a in node.attribute):
            raise ModelError(
                f"half precision: expected a graph without branches and loops, got {node.op_type!r}"
                f" {node.name!r}: unroll it in the export, or measure this model in fp32"
            )
        schema, stays = schema_of(node, self._versions), self._must_compute_in_fp32(node)
        # As in PyTorch's autocast, training normalizes a batch in half precision, by parameters and
        # statistics in fp32.
        is_normalized = self._training and node.op_type == "BatchNormalization"
        halves = 1 if is_normalized else len(node.input)
        takes = [
            not stays and allowed and place < halves
            for place, allowed in enumerate(allowed_inputs(node, schema, self._half))
        ]
        gives = [not stays and allowed for allowed in allowed_outputs(node, schema, self._half)]
        new = copied(node)
        new.input[:] = [
            self._convert_once(name, self._half if halved else _FLOAT)
            for name, halved in zip(node.input, takes, strict=True)
        ]
        if any(gives):
            _retype(new, self._half)
        new.output[:] = [
            self._write(name, self._half if halved else _FLOAT)
            for name, halved in zip(node.output, gives, strict=True)
        ]
        self._nodes.append(new)

    def _cast_outputs_to_fp32(self) -> None:
        for value in self._model.graph.output:
            versions = self._names_by_type.get(value.name, {})
            if value.name in self._floats & self._outputs and value.name not in versions.values():
                self._cast(versions[self._half], value.name, _FLOAT)

    def _must_compute_in_fp32(self, node: onnx.NodeProto) -> bool:
        looks_up = node.op_type in _LOOKUPS and node.input[0] in self._masters
        of_angles = not self._angles.isdisjoint(node.output)
        typed = any(a.name in _TYPE_ATTRIBUTES and a.i == _FLOAT for a in node.attribute)
        is_scatter = node.op_type in ("ScatterElements", "ScatterND")
        # ONNX Runtime's CPU provider cannot add, multiply or compare fp16 numbers in a scatter.
        reduces = is_scatter and any(a.s not in (b"", b"none") for a in node.attribute)
        wide = WIDE_IN_TRAINING if self._training else WIDE
        return node.op_type in wide or looks_up or of_angles or typed or reduces

    def _convert_once(self, name: str, kind: int) -> str:
        """Convert the float value ``name`` to ``kind``, unless it was converted before.

        Returns the name of the converted value. A value that is not float keeps its name and type.
        """
        if name not in self._floats:
            return name
        versions = self._names_by_type.setdefault(name, {})
        if kind not in versions:
            is_stored = name in self._convertible_floats
            suffix = self._suffix if kind == self._half else "_float"
            versions[kind] = name if is_stored and kind == self._half else name + suffix
            if is_stored:
                self._converted_initializers[versions[kind]] = _stored_as(
                    self._convertible_floats[name], versions[kind], kind
                )
            else:
                self._cast(next(iter(versions.values())), versions[kind], kind)
        return versions[kind]

    def _write(self, name: str, kind: int) -> str:
        if name not in self._floats:
            return name
        output = name if name not in self._outputs or kind == _FLOAT else name + self._suffix
        self._names_by_type[name] = {kind: output}
        return output

    def _cast(self, source: str, target: str, kind: int) -> None:
        name = f"{target}_cast" if target in self._named else target
        self._nodes.append(helper.make_node("Cast", [source], [target], name=name, to=kind))


def _angles_without_float_inputs(graph: onnx.GraphProto) -> set[str]:
    fed = {value.name for value in graph.input if value.type.tensor_type.elem_type == _FLOAT}
    angles: set[str] = set()
    for node in graph.node:
        if node.op_type in _ANGULAR:
            nodes = live_nodes(graph.node, node.output)
            if fed.isdisjoint(name for earlier in nodes for name in earlier.input):
                angles.update(name for earlier in nodes for name in earlier.output if name)
    return angles


def _retype(node: onnx.NodeProto, half: int) -> None:
    if node.op_type == "Cast":
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == _FLOAT:
                attribute.i = half
    elif node.op_type in _MADE_OF_TENSOR:
        value = constant_value(node) if node.op_type == "Constant" else _fill_value(node)
        if value is not None and value.dtype == np.float32:
            del node.attribute[:]
            node.attribute.append(helper.make_attribute("value", _half_tensor(value, "", half)))


def _fill_value(node: onnx.NodeProto) -> NDArray[Any]:
    """The value with which a ConstantOfShape fills its output."""
    tensors = (attribute.t for attribute in node.attribute)
    return next(map(numpy_helper.to_array, tensors), np.zeros(1, np.float32))


def _stored_as(tensor: onnx.TensorProto, name: str, kind: int) -> onnx.TensorProto:
    if kind != _FLOAT:
        return _half_tensor(numpy_helper.to_array(tensor), name, kind)
    copy = copied(tensor)
    copy.name = name
    return copy


def _half_tensor(values: NDArray[Any], name: str, kind: int) -> onnx.TensorProto:
    largest = _LARGEST[kind]
    near = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    return numpy_helper.from_array(near.astype(helper.tensor_dtype_to_np_dtype(kind)), name)
