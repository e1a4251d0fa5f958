"""Mixed precision: what a rule emits computes in the half type of its inputs, sums in float32.

The forward pass is rewritten by ``graphs.precision``; ``MixedBuilder`` does the same for each node
of the backward pass as it is emitted. The scale of the loss is left to ``loss_scaling``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import onnx
from onnx import TensorProto

from epochcost.autodiff.builder import Builder, Provider, Value
from epochcost.graphs.autocast import HALVES, WIDE_IN_TRAINING, allowed_inputs
from epochcost.graphs.contrib import DOMAIN
from epochcost.graphs.precision import in_mixed_precision

# What a step computes in; its weights, its loss and its update are float32 in each.
Precision = Literal["fp32", "fp16", "bf16"]
HALF_TYPES: Mapping[str, int] = MappingProxyType(
    {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
)


@dataclass(frozen=True)
class Mixed:
    """The half type to compute in, and the float32 tensors of a model that a step reads."""

    elem_type: int
    masters: frozenset[str]

    def rewritten(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """A bound model in mixed precision; raises ModelError for branches and loops."""
        return in_mixed_precision(model, self.elem_type, self.masters)

    def builder(
        self,
        opset_imports: Iterable[onnx.OperatorSetIdProto],
        ir_version: int,
        provider: Provider | None,
    ) -> Builder:
        """The builder that such a model is differentiated in."""
        return MixedBuilder(opset_imports, ir_version, provider)


def mixed_of(precision: Precision, masters: Iterable[str]) -> Mixed | None:
    """How to compute in a precision; None for fp32, which mixes nothing."""
    if precision == "fp32":
        return None
    return Mixed(HALF_TYPES[precision], frozenset(masters))


class MixedBuilder(Builder):
    """A Builder that emits in float32, between casts, what does not belong in half precision.

    That is what ``autocast.WIDE_IN_TRAINING`` names, and what ONNX knows no half form of. A cast
    back to float32 of what was computed in it is that value itself: such a gradient is not rounded.
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
        """Append a node, and the casts around it; see ``Builder.emit``."""
        settings = dict(attributes or {})
        halves = {v.elem_type for v in inputs if v is not None and v.elem_type in HALVES}
        if op_type == "Cast" and inputs[0] is not None:
            return (self._cast(inputs[0], settings["to"]),)
        if not halves or self._knows(op_type, inputs, settings.get("domain", ""), min(halves)):
            return super().emit(op_type, inputs, attributes, outputs)
        wide = [
            self._cast(v, TensorProto.FLOAT) if v is not None and v.elem_type in HALVES else v
            for v in inputs
        ]
        yielded = super().emit(op_type, wide, attributes, outputs)
        narrow = min(halves)
        return tuple(
            self._cast(y, narrow) if y.elem_type == TensorProto.FLOAT else y for y in yielded
        )

    def _knows(self, op_type: str, inputs: Sequence[Value | None], domain: str, half: int) -> bool:
        """Whether the operator computes in half precision on these inputs."""
        names = ["" if value is None else value.name for value in inputs]
        node = onnx.NodeProto(op_type=op_type, domain=domain, input=names)
        schema = None if domain == DOMAIN else self.schema(node)
        allowed = zip(inputs, allowed_inputs(node, schema, half), strict=True)
        return op_type not in WIDE_IN_TRAINING and all(
            fits for value, fits in allowed if value is not None and value.elem_type in HALVES
        )

    def _cast(self, value: Value, elem_type: int) -> Value:
        """A value in another type, each once."""
        if value.elem_type == elem_type:
            return value
        known = value.name, elem_type
        if known not in self._casts:
            [made] = super().emit("Cast", [value], {"to": elem_type})
            self._casts[known] = made
            if value.elem_type == TensorProto.FLOAT and elem_type in HALVES:
                self._casts[made.name, value.elem_type] = value
        return self._casts[known]
