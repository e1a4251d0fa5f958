"""Build ONNX graphs in Python, with the shape and type of every value.

``op.Gemm(a, b, transB=1)`` appends a node and returns its output. Values also support ``+ - * /``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, defs, helper, numpy_helper, shape_inference

from onnxstep.errors import ModelError
from onnxstep.graphs import contrib
from onnxstep.graphs.inference import MAX_SHAPE_CONSTANT, NodeInference
from onnxstep.graphs.tensors import FLOAT_TYPES, static_shape

Provider = Literal["cpu", "cuda"]
# Largest number of elements of a constant, such as indices or a 0/1 matrix. A constant beyond this
# limit does not fit into a file.
_MAX_CONSTANT_ELEMENTS = 2**24
# Prefix of the names of added values, and so of the nodes that compute them.
ADDED = "epochcost/"
# The most inputs of a Concat in a CUDA graph.
_MOST_CONCATENATED = 32


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the graph under construction: its name, static shape and ONNX element type."""

    op: Builder = field(repr=False)
    name: str
    shape: tuple[int, ...]
    elem_type: int

    @property
    def type_proto(self) -> onnx.TypeProto:
        """The element type and shape as ONNX stores them."""
        return helper.make_tensor_type_proto(self.elem_type, list(self.shape))

    @property
    def rank(self) -> int:
        """The number of dimensions of the tensor."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the tensor."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type as a numpy dtype."""
        return helper.tensor_dtype_to_np_dtype(self.elem_type)

    def cast(self, elem_type: int) -> Value:
        """The value in another element type; the value itself if it already has this type."""
        return self if self.elem_type == elem_type else self.op.Cast(self, to=elem_type)

    def reshape(self, *shape: int) -> Value:
        """The value in another shape, in which one length may be -1."""
        return self.op.Reshape(self, self.op.integers(*shape))

    @property
    def is_float(self) -> bool:
        """Whether the element type is a float type, so that the value can have a gradient."""
        return self.elem_type in FLOAT_TYPES

    def __add__(self, other: Value | float) -> Value:
        return self.op.Add(self, self._as_operand(other))

    def __radd__(self, other: float) -> Value:
        return self.op.Add(self._as_operand(other), self)

    def __sub__(self, other: Value | float) -> Value:
        return self.op.Sub(self, self._as_operand(other))

    def __rsub__(self, other: float) -> Value:
        return self.op.Sub(self._as_operand(other), self)

    def __mul__(self, other: Value | float) -> Value:
        value = self._as_operand(other)
        return self if self._is_unchanged_by(value) else self.op.Mul(self, value)

    def __rmul__(self, other: float) -> Value:
        return self.op.Mul(self._as_operand(other), self)

    def __truediv__(self, other: Value | float) -> Value:
        value = self._as_operand(other)
        return self if self._is_unchanged_by(value) else self.op.Div(self, value)

    def __rtruediv__(self, other: float) -> Value:
        return self.op.Div(self._as_operand(other), self)

    def __neg__(self) -> Value:
        return self.op.Neg(self)

    def _is_unchanged_by(self, factor: Value) -> bool:
        """Whether ``factor`` is the constant 1, and so neither changes the value nor the shape."""
        # ONNX Runtime 1.31 refuses some graphs in which a product or quotient with 1 is multiplied
        # by 1 / x.
        array = self.op.array_of(factor)
        return array is not None and array.size == 1 == array.item() and factor.rank <= self.rank

    def _as_operand(self, other: Value | float) -> Value:
        """Convert ``other`` to a value; a number gets the type of ``self``.

        A number usually becomes a tensor of rank 0. If ``self`` [..., 1] has several elements, a
        number or a value of rank 0 gets the rank of ``self``. Otherwise ONNX Runtime's CPU kernels
        would process ``self`` one element at a time (benchmarks/rules/scalar.py).
        """
        value = other if isinstance(other, Value) else self.op.scalar(other, self.elem_type)
        if value.rank or self.shape[-1:] != (1,) or self.size == 1:
            return value
        if isinstance(other, Value):
            return other.reshape(*[1] * self.rank)
        return self.op.constant(np.full([1] * self.rank, other, self.dtype))


class Builder:
    """A graph under construction: nodes, constants, and the shape and type of every value.

    The graph may use operators that only ``provider`` has; None means portable operators only.
    ``blocked_convolutions`` allows CPU kernels (NCHWc) that ONNX Runtime's x86-64 builds have.
    """

    def __init__(
        self,
        opset_imports: Iterable[onnx.OperatorSetIdProto],
        ir_version: int,
        provider: Provider | None = None,
        blocked_convolutions: bool = False,
    ) -> None:
        self.provider = provider
        self.blocked_convolutions = provider == "cpu" and blocked_convolutions
        self.opset_imports = list(opset_imports)
        self.ir_version = ir_version
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.values: dict[str, Value] = {}
        self._constants: dict[str, NDArray[Any]] = {}
        self._constant_names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._inference = NodeInference(self.opset_imports, ir_version)
        self._count = 0
        self._yielded: set[str] = set()
        self.labels: dict[str, str] = {}
        # Gradients that are a tensor times a factor for each channel, by the product's name.
        self.factors: dict[str, tuple[Value, Value]] = {}
        # Activations to keep for the backward pass, by the name of the node's first output.
        self.saved: dict[str, object] = {}

    def __getattr__(self, op_type: str) -> Callable[..., Value]:
        """Return a function that appends an ``op_type`` node and returns the node's output."""
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def emit(*inputs: Value | None, **attributes: Any) -> Value:
            return self.emit(op_type, inputs, attributes)[0]

        return emit

    @property
    def opset(self) -> int:
        """The opset version of ONNX's default domain in this graph."""
        return self._inference.versions[""]

    def emit(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any] | None = None,
        outputs: int = 1,
    ) -> tuple[Value, ...]:
        """Append a node with new output names and return its outputs.

        Raises ModelError if ONNX refuses the node. CUDA graphs cannot record a Concat of more than
        32 inputs, so it is split on CUDA. The CPU provider cannot scatter and add fp16 numbers, so
        this runs in float32 except on CUDA.
        """
        if op_type == "Concat" and self.provider == "cuda" and len(inputs) > _MOST_CONCATENATED:
            starts = range(0, len(inputs), _MOST_CONCATENATED)
            parts = [inputs[start : start + _MOST_CONCATENATED] for start in starts]
            inputs = [self.emit("Concat", part, attributes)[0] for part in parts]
            return self.emit("Concat", inputs, attributes)
        adds = (attributes or {}).get("reduction") == "add" and self.provider != "cuda"
        if adds and any(map(_is_fp16, inputs)):
            wide = [v and (v.cast(TensorProto.FLOAT) if _is_fp16(v) else v) for v in inputs]
            yielded = self.emit(op_type, wide, attributes, outputs)
            return tuple(y.cast(TensorProto.FLOAT16) for y in yielded)
        node = helper.make_node(
            op_type,
            ["" if value is None else value.name for value in inputs],
            [self.fresh(op_type) for _ in range(outputs)],
            **(attributes or {}),
        )
        self._yielded.update(node.output)
        return self.append(node)

    def emit_shaped(self, like: Value, shape: Sequence[int], node: onnx.NodeProto) -> Value:
        """Append ``node`` and return its output, which has ``shape`` and the type of ``like``."""
        node.output.append(self.fresh(node.op_type))
        self.declare(node.output[0], helper.make_tensor_type_proto(like.elem_type, list(shape)))
        return self.append(node)[0]

    def append(self, node: onnx.NodeProto) -> tuple[Value, ...]:
        """Append a node whose inputs are already declared; return its outputs."""
        self.declare_outputs(node)
        self.nodes.append(node)
        return tuple(self.values[name] for name in node.output if name)

    def declare_outputs(self, node: onnx.NodeProto) -> None:
        """Infer and declare the shapes and types of a node's outputs that are not yet declared."""
        if any(name and name not in self.values for name in node.output):
            for name, kind in zip(node.output, self._output_types(node), strict=True):
                if name and name not in self.values:
                    self.declare(name, kind)

    def declare(self, name: str, type_proto: onnx.TypeProto | None) -> Value:
        """Declare the value ``name``; raises ModelError if ``type_proto`` has no static shape."""
        shape = static_shape(type_proto)
        if type_proto is None or shape is None:
            raise ModelError(
                f"value {name!r}: expected a static shape, got an unknown one; export the model "
                "with fixed shapes"
            )
        self.values[name] = Value(self, name, shape, type_proto.tensor_type.elem_type)
        return self.values[name]

    def input(self, name: str, shape: Sequence[int], elem_type: int) -> Value:
        """Declare a graph input; raises ModelError if a value with this name exists."""
        self._require_unused(name)
        return self.declare(name, helper.make_tensor_type_proto(elem_type, list(shape)))

    def _require_unused(self, name: str) -> None:
        if name in self.values:
            raise ModelError(
                f"value {name!r}: onnxstep needs this name, which is already taken in this graph; "
                "rename the value in the model"
            )

    def constant(self, array: NDArray[Any]) -> Value:
        """An initializer that contains ``array``; equal arrays share an initializer."""
        array = np.asarray(array, order="C")
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constant_names:
            self._constant_names[key] = self.fresh("constant")
            self.add_initializer(numpy_helper.from_array(array, self._constant_names[key]))
        return self.values[self._constant_names[key]]

    def add_initializer(self, tensor: onnx.TensorProto) -> Value:
        """Add ``tensor`` as an initializer under its own name."""
        self.initializers.append(tensor)
        value = self.declare(
            tensor.name, helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        )
        if value.size <= MAX_SHAPE_CONSTANT:
            self._constants[tensor.name] = numpy_helper.to_array(tensor)
        return value

    def scalar(self, number: float, elem_type: int) -> Value:
        """A constant of rank 0 and type ``elem_type``."""
        return self.constant(np.array(number, dtype=helper.tensor_dtype_to_np_dtype(elem_type)))

    def zeros(self, shape: Sequence[int], elem_type: int) -> Value:
        """A tensor of zeros that an Expand node computes, so that the file does not store it."""
        zero = np.zeros(1 if shape else (), dtype=helper.tensor_dtype_to_np_dtype(elem_type))
        number = self.constant(zero)
        return self.Expand(number, self.integers(*shape)) if shape else number

    def integers(self, *numbers: int) -> Value:
        """A constant int64 vector of any length, for axes, shapes, starts and ends."""
        array = np.array(numbers, dtype=np.int64)
        value = self.constant(array)
        self._constants[value.name] = array
        return value

    def rename(self, value: Value, name: str) -> Value:
        """Name ``value`` in the finished graph; raises ModelError if another value has ``name``.

        An Identity node copies a value that is an input, comes from a model or was renamed before.
        """
        if value.name == name:
            return value
        self._require_unused(name)
        if value.name not in self._yielded or value.name in self.labels:
            return self.append(helper.make_node("Identity", [value.name], [name]))[0]
        self.labels[value.name] = name
        self.values[name] = Value(self, name, value.shape, value.elem_type)
        return self.values[name]

    def array_of(self, value: Value | None) -> NDArray[Any] | None:
        """The array of a small constant; None for large constants and for computed values."""
        return None if value is None else self._constants.get(value.name)

    def learn_constant(self, name: str, array: NDArray[Any]) -> None:
        """Remember the array of the constant ``name``, if it is small, for shape inference."""
        if array.size <= MAX_SHAPE_CONSTANT:
            self._constants[name] = array

    def forget_constant(self, name: str) -> None:
        """Treat an initializer as a value that changes between runs: it has no array any more."""
        self._constants.pop(name, None)

    def fresh(self, hint: str) -> str:
        """A new name, with ``hint`` in it, that no value of this graph has."""
        self._count += 1
        name = f"{ADDED}{hint}_{self._count}"
        return self.fresh(hint) if name in self.values else name

    def schema(self, node: onnx.NodeProto) -> defs.OpSchema:
        """ONNX's schema of a node's operator; raises ModelError if the graph's opset lacks it."""
        try:
            return self._inference.schema(node)
        except defs.SchemaError:
            raise ModelError(
                f"node {node.name or node.op_type!r}: operator "
                f"{node.domain or 'ai.onnx'}::{node.op_type} is unknown at opset "
                f"{self._inference.versions.get(node.domain)}"
            ) from None

    def since_version(self, node: onnx.NodeProto) -> int:
        """The opset version, at most the graph's, that last changed the node's operator."""
        if node.domain == contrib.DOMAIN:
            return contrib.VERSION
        return self.schema(node).since_version

    def _output_types(self, node: onnx.NodeProto) -> Sequence[onnx.TypeProto | None]:
        types = {name: self.values[name].type_proto for name in node.input if name}
        if not contrib.is_known(node):
            self.schema(node)
        try:
            return self._inference.output_types(node, types, self._constants)
        except shape_inference.InferenceError as error:
            inputs = (self.values[name] for name in node.input if name)
            shapes = ", ".join(f"{value.name}{list(value.shape)}" for value in inputs)
            reason = str(error).strip().splitlines()[-1]
            raise ModelError(f"{node.op_type}({shapes}): {reason}") from None


def ascending(count: int) -> NDArray[np.int64]:
    """The int64 array 0, 1, …, count - 1; raises ModelError if it is too large for a constant."""
    require_room(count)
    return np.arange(count, dtype=np.int64)


def require_room(*shape: int) -> None:
    """Raise ModelError if a constant of this shape would have more than 2**24 elements."""
    if math.prod(shape) > _MAX_CONSTANT_ELEMENTS:
        raise ModelError(
            f"expected constants of at most 2**24 elements, got a constant of shape {list(shape)}"
        )


def _is_fp16(value: Value | None) -> bool:
    return value is not None and value.elem_type == TensorProto.FLOAT16
