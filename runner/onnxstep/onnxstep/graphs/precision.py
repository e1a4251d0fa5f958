"""Convert a graph to half precision, for inference or for mixed-precision training.

Operators in ``WIDE``, or for training in ``WIDE_IN_TRAINING``, compute in fp32. So do sines and
cosines that depend on no float input of the graph, with all nodes before them. For bf16, operators
without a CUDA kernel for bf16 compute in fp32, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onnxstep.errors import ModelError
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.contrib import DOMAIN
from onnxstep.graphs.cuda_kernels import computes_in, schema_of
from onnxstep.graphs.nodes import copied, live_nodes
from onnxstep.graphs.parameters import parameters, state
from onnxstep.graphs.tensors import declared_values

_TYPE_NAMES: dict[int, str] = {
    TensorProto.FLOAT16: "tensor(float16)",
    TensorProto.BFLOAT16: "tensor(bfloat16)",
}
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
# For training, inputs from this index on stay fp32: a batch is normalized in half precision, by
# parameters and statistics in fp32, as in PyTorch's autocast.
_WIDE_IN_TRAINING_FROM: Mapping[str, int] = MappingProxyType({"BatchNormalization": 1})
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
    formals = () if schema is None else schema.inputs
    return _half_allowed_flags(node, formals, schema, half, len(node.input))


def allowed_outputs(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema | None, half: int
) -> list[bool]:
    """For each output of the node, whether its operator can return the type ``half``."""
    formals = () if schema is None else schema.outputs
    return _half_allowed_flags(node, formals, schema, half, len(node.output))


def _half_allowed_flags(
    node: onnx.NodeProto,
    formals: Sequence[onnx.defs.OpSchema.FormalParameter],
    schema: onnx.defs.OpSchema | None,
    half: int,
    count: int,
) -> list[bool]:
    if schema is None:
        return [node.domain == DOMAIN and node.op_type in _CONTRIBUTED] * count
    types = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    word = _TYPE_NAMES[half]
    if half == TensorProto.BFLOAT16 and not computes_in(schema, half):
        return [False] * count
    flags = [word in types.get(formal.type_str, [formal.type_str]) for formal in formals]
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
    cache: Mapping[str, str] = MappingProxyType({}),
    scales: Collection[str] = (),
) -> onnx.ModelProto:
    """Convert a model with bound dimensions for inference in fp16 or bf16.

    Parameters, running statistics, ``scales`` of quantized weights and a decoder's cache become
    ``elem_type``. ``cache`` maps cache inputs to outputs. Other float inputs and outputs stay fp32.
    Constants beyond the type's range are clipped. Raises ModelError for branches or loops.
    """
    weights = {tensor.name for tensor in (*parameters(model), *state(model))}
    halved = weights | {*scales, *cache}
    ends = frozenset(cache.values())
    return _rewritten(
        model,
        _HalfPrecisionRewriting(model, elem_type, WIDE, halved_inputs=halved, half_outputs=ends),
    )


def in_mixed_precision(
    model: onnx.ModelProto, elem_type: int, masters: Collection[str]
) -> onnx.ModelProto:
    """Convert a model with bound dimensions for training in fp16 or bf16.

    ``masters`` names the weights and running statistics, which stay fp32; a step casts each of them
    once. Raises ModelError for branches or loops.
    """
    rewriting = _HalfPrecisionRewriting(
        model,
        elem_type,
        WIDE_IN_TRAINING,
        fp32_initializers=masters,
        first_wide_inputs=_WIDE_IN_TRAINING_FROM,
    )
    return _rewritten(model, rewriting)


def _rewritten(model: onnx.ModelProto, rewriting: _HalfPrecisionRewriting) -> onnx.ModelProto:
    half = copied(model)
    graph = half.graph
    del graph.node[:], graph.value_info[:], graph.initializer[:]
    rewriting.declare_inputs_and_outputs(graph)
    for node in model.graph.node:
        rewriting.append_with_casts(node)
    rewriting.cast_outputs_to_fp32()
    graph.node.extend(rewriting.nodes)
    graph.initializer.extend(rewriting.initializers())
    return bind_dimensions(half, {})


class _HalfPrecisionRewriting:
    """Rewrites the nodes of a graph one by one in half precision, with casts between the types.

    ``first_wide_inputs`` has for some operators the input index from which on inputs stay fp32.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        elem_type: int,
        wide_operators: Collection[str],
        *,
        halved_inputs: Collection[str] = (),
        half_outputs: Collection[str] = (),
        fp32_initializers: Collection[str] = (),
        first_wide_inputs: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._wide, self._halved, self._masters = wide_operators, halved_inputs, fp32_initializers
        self._half_outputs, self._wide_inputs = half_outputs, first_wide_inputs
        self.nodes: list[onnx.NodeProto] = []
        self._half = elem_type
        self._suffix = "_" + TensorProto.DataType.Name(elem_type).lower()
        self._model = model
        self._versions = {opset.domain: opset.version for opset in model.opset_import}
        floats = {t.name: t for t in model.graph.initializer if t.data_type == _FLOAT}
        self._convertible_floats = {
            name: floats[name] for name in floats if name not in fp32_initializers
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
            name: {_FLOAT: name} for name in floats if name in fp32_initializers
        }
        self._converted_initializers: dict[str, onnx.TensorProto] = {}

    def declare_inputs_and_outputs(self, graph: onnx.GraphProto) -> None:
        for value in graph.input:
            if value.name in self._floats:
                kind = self._half if value.name in self._halved else _FLOAT
                value.type.tensor_type.elem_type = kind
                self._names_by_type[value.name] = {kind: value.name}
        for value in graph.output:
            if value.name in self._half_outputs:
                value.type.tensor_type.elem_type = self._half

    def append_with_casts(self, node: onnx.NodeProto) -> None:
        if any(a.HasField("g") or a.graphs for a in node.attribute):
            raise ModelError(
                f"half precision: expected a graph without branches and loops, got {node.op_type!r}"
                f" {node.name!r}: unroll it in the export, or measure this model in fp32"
            )
        schema, stays = schema_of(node, self._versions), self._must_compute_in_fp32(node)
        halves = self._wide_inputs.get(node.op_type, len(node.input))
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
        self.nodes.append(new)

    def cast_outputs_to_fp32(self) -> None:
        for value in self._model.graph.output:
            versions = self._names_by_type.get(value.name, {})
            if value.name in self._floats & self._outputs and value.name not in versions.values():
                self._cast(versions[self._half], value.name, _FLOAT)

    def initializers(self) -> Iterator[onnx.TensorProto]:
        yield from self._converted_initializers.values()
        for tensor in self._model.graph.initializer:
            if tensor.name not in self._convertible_floats:
                yield tensor

    def _must_compute_in_fp32(self, node: onnx.NodeProto) -> bool:
        looks_up = node.op_type in _LOOKUPS and node.input[0] in self._masters
        of_angles = not self._angles.isdisjoint(node.output)
        typed = any(a.name in _TYPE_ATTRIBUTES and a.i == _FLOAT for a in node.attribute)
        is_scatter = node.op_type in ("ScatterElements", "ScatterND")
        # ONNX Runtime's CPU provider cannot add, multiply or compare fp16 numbers in a scatter.
        reduces = is_scatter and any(a.s not in (b"", b"none") for a in node.attribute)
        return node.op_type in self._wide or looks_up or of_angles or typed or reduces

    def _convert_once(self, name: str, kind: int) -> str:
        """Convert the float value ``name`` to ``kind``, unless it was converted before.

        Returns the name of the converted value. A value that is not float keeps its name and type.
        """
        if name not in self._floats:
            return name
        versions = self._names_by_type.setdefault(name, {})
        if kind not in versions:
            versions[kind] = self._name_after_conversion(name, kind)
            if name in self._convertible_floats:
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

    def _name_after_conversion(self, name: str, kind: int) -> str:
        if name in self._convertible_floats and kind == self._half:
            return name
        return name + (self._suffix if kind == self._half else "_float")

    def _cast(self, source: str, target: str, kind: int) -> None:
        name = f"{target}_cast" if target in self._named else target
        self.nodes.append(helper.make_node("Cast", [source], [target], name=name, to=kind))


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
        value = _fp32_constant_value(node)
        if value is not None:
            del node.attribute[:]
            node.attribute.append(helper.make_attribute("value", _half_tensor(value, "", half)))


def _fp32_constant_value(node: onnx.NodeProto) -> NDArray[Any] | None:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.t.data_type == _FLOAT:
            return numpy_helper.to_array(attribute.t)
        if attribute.name in ("value_float", "value_floats"):
            return np.asarray(helper.get_attribute_value(attribute), np.float32)
    says_nothing = node.op_type == "ConstantOfShape" and not node.attribute
    return np.zeros(1, np.float32) if says_nothing else None


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
