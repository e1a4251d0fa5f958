"""Mixed precision: gradient rules compute in the half type of their inputs, and sum in float32.

Dynamic loss scaling keeps fp16 gradients from becoming zero or infinite. If a gradient is not
finite, the parameters and the optimizer state stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto

from onnxstep.builder import Builder, Value
from onnxstep.graphs.contrib import DOMAIN
from onnxstep.graphs.precision import WIDE_IN_TRAINING, allowed_inputs
from onnxstep.graphs.tensors import HALF_TYPES
from onnxstep.update import Transition, sum_of_squares

# Type in which most operators compute; stored weights, loss and update are always float32.
Precision = Literal["fp32", "fp16", "bf16"]
TYPE_OF_PRECISION: Mapping[str, int] = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


class MixedBuilder(Builder):
    """A Builder that emits an operator in float32, between casts, if a half type is unsuitable.

    It is unsuitable for operators in ``precision.WIDE_IN_TRAINING`` or without support for it. A
    float32 value that was cast to a half type and back is the original value, without rounding.
    """

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self._casts: dict[tuple[str, int], Value] = {}

    def emit(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any] | None = None,
        outputs: int = 1,
    ) -> tuple[Value, ...]:
        """Append a node, and casts around a node that computes in float32; see ``Builder.emit``."""
        settings = dict(attributes or {})
        halves = [v.elem_type for v in inputs if v is not None and v.elem_type in HALF_TYPES]
        half = min(halves, default=None)
        if op_type == "Cast" and inputs[0] is not None:
            return (self._cast_once(inputs[0], settings["to"]),)
        domain = settings.get("domain", "")
        if half is None or self._should_compute_in_half(op_type, inputs, domain, half):
            return super().emit(op_type, inputs, attributes, outputs)
        wide = [v and (v.cast(_FLOAT) if v.elem_type in HALF_TYPES else v) for v in inputs]
        yielded = super().emit(op_type, wide, attributes, outputs)
        return tuple(
            self._cast_once(y, half) if y.elem_type == TensorProto.FLOAT else y for y in yielded
        )

    def _should_compute_in_half(
        self, op_type: str, inputs: Sequence[Value | None], domain: str, half: int
    ) -> bool:
        names = ["" if value is None else value.name for value in inputs]
        node = onnx.NodeProto(op_type=op_type, domain=domain, input=names)
        schema = None if domain == DOMAIN else self.schema(node)
        allowed = zip(inputs, allowed_inputs(node, schema, half), strict=True)
        return op_type not in WIDE_IN_TRAINING and all(
            fits for value, fits in allowed if value is not None and value.elem_type in HALF_TYPES
        )

    def _cast_once(self, value: Value, elem_type: int) -> Value:
        if value.elem_type == elem_type:
            return value
        key = value.name, elem_type
        if key not in self._casts:
            [result] = super().emit("Cast", [value], {"to": elem_type})
            self._casts[key] = result
            if value.elem_type == TensorProto.FLOAT and elem_type in HALF_TYPES:
                self._casts[result.name, value.elem_type] = value
        return self._casts[key]


SCALE = "loss_scale"
GOOD_STEPS = "loss_scale.good_steps"
_FLOAT = TensorProto.FLOAT
# The largest power of two in float32.
_LARGEST = 2.0**127


@dataclass(frozen=True)
class LossScaling:
    """Settings of dynamic loss scaling; the defaults are those of ``torch.amp.GradScaler``.

    A step whose gradients are not finite multiplies the scale by ``backoff``. After
    ``growth_interval`` consecutive finite steps, the scale is multiplied by ``growth``.
    """

    initial: float = 2.0**16
    growth: float = 2.0
    backoff: float = 0.5
    growth_interval: int = 2000


class Scale:
    """The loss scale, a float32 scalar that each step passes to the next, and its operations."""

    def __init__(self, op: Builder, scaling: LossScaling) -> None:
        self._op, self._scaling = op, scaling
        self.before = op.input(SCALE, (), _FLOAT)
        self._good_steps = op.input(GOOD_STEPS, (), _FLOAT)

    def scaled(self, cotangents: Mapping[str, Value]) -> dict[str, Value]:
        """Multiply cotangents (gradients at the outputs) by the loss scale; their types stay."""
        return {name: _times(value, self.before) for name, value in cotangents.items()}

    def unscaled(self, gradients: Mapping[str, Value]) -> dict[str, Value]:
        """Divide gradients by the loss scale; their types stay."""
        inverse = 1.0 / self.before
        return {name: _times(gradient, inverse) for name, gradient in gradients.items()}

    def moves(self, finite: Value) -> Iterator[Transition]:
        """Emit the next loss scale and count of finite steps, given the bool scalar ``finite``."""
        op, scaling = self._op, self._scaling
        count = self._good_steps + 1.0
        grows = op.Equal(count, op.scalar(scaling.growth_interval, _FLOAT))
        grown = op.Min(self.before * scaling.growth, op.scalar(_LARGEST, _FLOAT))
        good = op.Where(grows, grown, self.before)
        scale = op.Where(finite, good, self.before * scaling.backoff)
        reset = op.scalar(0.0, _FLOAT)
        steps = op.Where(finite, op.Where(grows, reset, count), reset)
        yield Transition(self.before, op.rename(scale, f"{SCALE}.next"), "state", scaling.initial)
        yield Transition(self._good_steps, op.rename(steps, f"{GOOD_STEPS}.next"), "state")


def _times(value: Value, factor: Value) -> Value:
    return (value.cast(_FLOAT) * factor).cast(value.elem_type)


def all_finite(op: Builder, gradients: Mapping[str, Value]) -> Value:
    """Bool scalar: whether all gradients are finite and their global 2-norm below about 1.8e19."""
    total = sum_of_squares(op, gradients, _FLOAT).reshape()
    return op.Less(total, op.scalar(np.inf, total.elem_type))
