"""A forward node as a rule sees it: values in and out, attributes with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from epochcost.autodiff.builder import Builder, Value
from epochcost.errors import ModelError
from epochcost.graphs import contrib


@dataclass(frozen=True)
class Node:
    """One node of the forward graph; ``wanted`` holds the names that need a cotangent."""

    op: Builder
    proto: onnx.NodeProto
    wanted: frozenset[str]

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """The inputs in order, None where an optional one is left out."""
        return tuple(self.op.values[name] if name else None for name in self.proto.input)

    def input(self, index: int) -> Value:
        """A demanded input."""
        value = self.optional_input(index)
        if value is None:
            raise ModelError(f"{self.label}: input {index} is missing")
        return value

    def optional_input(self, index: int) -> Value | None:
        """An input, or None where it is left out."""
        return self.inputs[index] if index < len(self.proto.input) else None

    def constant(self, index: int, what: str) -> NDArray[Any] | None:
        """The array behind an optional input that the derivative must know beforehand.

        None where it is left out; raises ModelError where it is only known at run time.
        """
        value = self.optional_input(index)
        if value is None:
            return None
        known = self.op.known(value)
        if known is None:
            raise ModelError(
                f"{self.label}: demanded {what} as a constant; {value.name!r} is computed at run "
                "time; fold the constants of the model, or export it with fixed shapes"
            )
        return known

    @property
    def x(self) -> Value:
        """The first input."""
        return self.input(0)

    @property
    def y(self) -> Value:
        """The first output."""
        return self.output(0)

    def output(self, index: int) -> Value:
        """An output; an optional one that the graph leaves out is added to the node."""
        while len(self.proto.output) <= index:
            self.proto.output.append("")
        if not self.proto.output[index]:
            self.proto.output[index] = self.op.fresh(self.proto.op_type)
            self.op.declare_outputs(self.proto)
        return self.op.values[self.proto.output[index]]

    def wants(self, index: int) -> bool:
        """Whether an input needs a cotangent; rules may skip the others."""
        return index < len(self.proto.input) and self.proto.input[index] in self.wanted

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, else the default of the operator's schema, else ``default``.

        onnx has no schema of contributed operators.
        """
        for entry in self.proto.attribute:
            if entry.name == name:
                return _decoded(helper.get_attribute_value(entry))
        if self.proto.domain == contrib.DOMAIN:
            return default
        declared = self.op.schema(self.proto).attributes.get(name)
        if declared is not None and declared.default_value.name:
            return _decoded(helper.get_attribute_value(declared.default_value))
        return default

    @property
    def label(self) -> str:
        """How a message names the node."""
        return f"node {self.proto.name or self.proto.output[0]!r} ({self.proto.op_type})"


def _decoded(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise ModelError(f"attribute {value!r}: demanded text in UTF-8") from None
