"""Prepare a test of ONNX's suite for differentiation.

Float inputs become float32, or float64 for finite differences. Small changes move them away from
ties and kinks. All other inputs become constants of the model.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

from onnxstep.graphs.nodes import copied
from onnxstep.graphs.tensors import FLOAT_TYPES
from oracle.precision import in_type
from oracle.suite import Array, SuiteCase

# Float inputs that are settings of an operator, not data: their input indices.
SETTINGS = {
    "Dropout": (1,),
    "OneHot": (0, 1),
    "Range": (0, 1, 2),
    "Resize": (1, 2),
    "Upsample": (1,),
}
# Relative size of the moves; small enough to stay inside the domains of acos and log.
_JITTER = 2e-3
# First opset whose ScatterElements and ScatterND can add, which some gradients need.
_OLDEST_OPSET = 16


class NothingToDifferentiateError(Exception):
    """The test has no float input or no float output."""


@dataclass(frozen=True)
class Posed:
    """A test's float32 model, the inputs to differentiate, and the names of its float outputs."""

    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    outputs: tuple[str, ...]

    @property
    def exact(self) -> onnx.ModelProto:
        """The model converted to float64."""
        return in_type(self.model, TensorProto.DOUBLE)

    def moved(self, seed: int) -> Posed:
        """The same model with slightly changed inputs; infinities and NaN stay."""
        rng = np.random.default_rng(seed)
        return replace(self, inputs={name: _nearby(x, rng) for name, x in self.inputs.items()})


def posed(case: SuiteCase) -> Posed:
    """The float32 model of a test, the inputs to differentiate, and the float outputs.

    Other inputs become constants. Raises NothingToDifferentiateError if the test has no float input
    to differentiate or no float output.
    """
    names = [value.name for value in case.model.graph.input]
    settings = {
        case.node.input[i] for i in SETTINGS.get(case.op_type, ()) if i < len(case.node.input)
    }
    moving = [name for name in names if name not in settings and is_float(case.inputs[name])]
    outputs = [name for name, y in case.outputs.items() if is_float(y)]
    if not any(case.inputs[name].size for name in moving):
        raise NothingToDifferentiateError("no float input")
    if not outputs:
        raise NothingToDifferentiateError("no float output")
    return Posed(
        in_type(
            _with_constants(_copy_at_recent_opset(case.model), case, moving), TensorProto.FLOAT
        ),
        {name: case.inputs[name].astype(np.float64) for name in moving},
        tuple(outputs),
    )


def is_float(value: object) -> bool:
    """Whether a value is a tensor of a float type, which can be differentiated."""
    return (
        isinstance(value, np.ndarray | np.generic)
        and value.dtype != object
        and value.dtype.kind not in "US"
        and helper.np_dtype_to_tensor_dtype(value.dtype) in FLOAT_TYPES
    )


def seed_of(case: SuiteCase) -> int:
    """A seed that depends only on the name of the test."""
    return zlib.crc32(case.name.encode())


def _nearby(x: Array, rng: np.random.Generator) -> Array:
    finite = np.where(np.isfinite(x), x, 0.0)
    scale = float(np.sqrt(np.mean(finite**2))) if x.size else 0.0
    return x + np.asarray(rng.uniform(-_JITTER, _JITTER, x.shape)) * (scale or 1.0)


def _with_constants(model: onnx.ModelProto, case: SuiteCase, moving: list[str]) -> onnx.ModelProto:
    graph = model.graph
    stay = [v for v in graph.input if v.name not in moving]
    for value in stay:
        if value.type.HasField("tensor_type"):
            graph.initializer.append(_tensor(case.inputs[value.name], value.name))
            graph.input.remove(value)
    return model


def _tensor(value: object, name: str) -> onnx.TensorProto:
    if isinstance(value, TensorProto):
        tensor = copied(value)
        tensor.name = name
        return tensor
    return numpy_helper.from_array(np.asarray(value), name)


def _copy_at_recent_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of the model, with an opset below 16 raised to 16 if this changes no operator."""
    opset = opset_of(model)
    older = opset < _OLDEST_OPSET
    same = older and all(_unchanged(node, opset, _OLDEST_OPSET) for node in model.graph.node)
    return stamped(model, _OLDEST_OPSET if same else opset)


def stamped(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Copy of the model that declares the opset ``opset``, without converting or checking it."""
    copy = copied(model)
    for entry in copy.opset_import:
        entry.version = entry.version if entry.domain else opset
    return copy


def opset_of(model: onnx.ModelProto) -> int:
    """The opset of ONNX's default domain that a model declares."""
    return next((entry.version for entry in model.opset_import if not entry.domain), _OLDEST_OPSET)


def _unchanged(node: onnx.NodeProto, *opsets: int) -> bool:
    if node.domain:
        return True
    return len({defs.get_schema(node.op_type, opset).since_version for opset in opsets}) == 1
