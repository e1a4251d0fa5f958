"""Table of operators' derivatives: a rule, zero by nature, or refused with a reason.

Keys are domain, operator and the version that last changed the operator's meaning. A rule answers
only for the versions it lists, so a new version is refused until somebody has reviewed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import onnx
from numpy.typing import NDArray
from onnx import helper

from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.graphs import contrib
from onnxstep.graphs.nodes import reads


@dataclass(frozen=True)
class Node:
    """A node of the forward graph; ``dependent`` has the names that need a cotangent."""

    op: Builder
    proto: onnx.NodeProto
    dependent: frozenset[str]

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """The inputs in order, None for an omitted optional one."""
        return tuple(self.op.values[name] if name else None for name in self.proto.input)

    def input(self, index: int) -> Value:
        """A required input; raises ModelError if it is missing."""
        value = self.optional_input(index)
        if value is None:
            raise ModelError(f"{self.label}: input {index} is missing")
        return value

    def optional_input(self, index: int) -> Value | None:
        """An input, or None if it is omitted."""
        name = self.proto.input[index] if index < len(self.proto.input) else ""
        return self.op.values[name] if name else None

    def constant(self, index: int, subject: str) -> NDArray[Any] | None:
        """The array of an optional input that the derivative must know while it is built.

        None if omitted; raises ModelError, naming the ``subject``, if it is computed at run time.
        """
        value = self.optional_input(index)
        if value is None:
            return None
        value_array = self.op.array_of(value)
        if value_array is None:
            raise ModelError(
                f"{self.label}: expected {subject} as a constant; {value.name!r} is computed at "
                "run time; fold the constants of the model, or export it with fixed shapes"
            )
        return value_array

    @property
    def x(self) -> Value:
        """The first input."""
        return self.input(0)

    @property
    def y(self) -> Value:
        """The first output."""
        return self.output(0)

    def output(self, index: int) -> Value:
        """An output; an omitted optional one is added to the node."""
        while len(self.proto.output) <= index:
            self.proto.output.append("")
        if not self.proto.output[index]:
            self.proto.output[index] = self.op.fresh(self.proto.op_type)
            self.op.declare_outputs(self.proto)
        return self.op.values[self.proto.output[index]]

    def wants(self, index: int) -> bool:
        """Whether an input needs a cotangent; rules may skip the others."""
        return index < len(self.proto.input) and self.proto.input[index] in self.dependent

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, else the default of the operator's schema, else ``default``.

        ONNX Runtime's contributed operators have no schema.
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
        """The node's name and operator, for messages."""
        return f"node {self.proto.name or self.proto.output[0]!r} ({self.proto.op_type})"


def _decoded(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise ModelError(f"attribute {value!r}: expected text in UTF-8") from None


# One cotangent, or one per input; None where an input takes no gradient.
Cotangents = Value | Sequence[Value | None]


class Rule(Protocol):
    """A vector-Jacobian product: cotangents of the outputs in, cotangents of the inputs out.

    ``dy`` holds the cotangents of the float outputs, None if the loss does not depend on one; at
    least one is a value. A result may have the broadcast shape: the caller sums it to the input's
    shape.
    """

    def __call__(self, op: Builder, node: Node, /, *dy: Any) -> Cotangents:
        """Emit the backward nodes of ``node`` through ``op``."""
        ...


@dataclass(frozen=True)
class Gradient:
    """The derivative that this rule emits."""

    rule: Rule


@dataclass(frozen=True)
class Zero:
    """The derivative is zero wherever it exists: shapes, comparisons, rounding."""


@dataclass(frozen=True)
class Refused:
    """No derivative, for this reason."""

    reason: str


Answer = Gradient | Zero | Refused
Key = tuple[str, str, int]
# Values that an error names at each end of a long path.
_PATH_END = 4
_HOW_TO_ADD_A_RULE = "onnxstep's docs/adding-an-operator.md"
_ANSWERS: dict[Key, Answer] = {}


def gradient(op_type: str, versions: Iterable[int], domain: str = "") -> Callable[[Rule], Rule]:
    """Register the decorated rule for the operator's ``versions``."""

    def register(rule: Rule) -> Rule:
        _register(domain, op_type, versions, Gradient(rule))
        return rule

    return register


def zero(op_type: str, versions: Iterable[int], domain: str = "") -> None:
    """Register that the operator's derivative is zero by nature."""
    _register(domain, op_type, versions, Zero())


def refused(op_type: str, versions: Iterable[int], reason: str, domain: str = "") -> None:
    """Register that the operator is not differentiated, and why."""
    _register(domain, op_type, versions, Refused(reason))


def answer(domain: str, op_type: str, version: int) -> Answer | None:
    """The registered answer; None for an unknown operator."""
    return _ANSWERS.get((domain, op_type, version))


def answer_for(op: Builder, proto: onnx.NodeProto) -> Answer | None:
    """The registered answer for a node's operator at the opset of its graph."""
    return answer(proto.domain, proto.op_type, op.since_version(proto))


def refusal(domain: str, op_type: str) -> str | None:
    """The operator's reason of refusal in any version; None if it is not refused."""
    return next(
        (
            answer_of_operator.reason
            for (owner, name, _), answer_of_operator in _ANSWERS.items()
            if (owner, name) == (domain, op_type) and isinstance(answer_of_operator, Refused)
        ),
        None,
    )


def registered() -> dict[Key, Answer]:
    """The whole table."""
    return dict(_ANSWERS)


def _register(domain: str, op_type: str, versions: Iterable[int], value: Answer) -> None:
    for version in versions:
        if (domain, op_type, version) in _ANSWERS:
            raise ValueError(f"two answers are registered for {domain}::{op_type} {version}")
        _ANSWERS[domain, op_type, version] = value


def undifferentiable(
    node: Node, answer_of_node: Answer | None, nodes: Sequence[onnx.NodeProto], targets: Set[str]
) -> ModelError:
    """Error for a node without a rule: operator, version, reason, and its path.

    ``nodes`` are all nodes of the graph; the path begins at one of ``targets``.
    """
    proto, version = node.proto, node.op.since_version(node.proto)
    reason = (
        answer_of_node.reason if isinstance(answer_of_node, Refused) else "it has no gradient rule"
    )
    path = " -> ".join(_shortened(_path_to(node, nodes, targets)))
    return ModelError(
        f"node {proto.name or proto.output[0]!r}: operator {proto.domain or 'ai.onnx'}::"
        f"{proto.op_type} (version {version}) cannot be differentiated: {reason}; "
        f"it lies on the path {path} -> loss. Freeze the parameters before it, export the model "
        f"without it, or add a rule: {_HOW_TO_ADD_A_RULE}"
    )


def _shortened(path: list[str]) -> list[str]:
    left_out = len(path) - 2 * _PATH_END
    if left_out <= 1:
        return path
    return [*path[:_PATH_END], f"({left_out} more)", *path[-_PATH_END:]]


def _path_to(node: Node, nodes: Sequence[onnx.NodeProto], targets: Set[str]) -> list[str]:
    """The names from a target to the node's output, along each node's first dependent input."""
    producers = {name: proto for proto in nodes for name in proto.output}
    path = [node.proto.output[0]]
    current: onnx.NodeProto | None = node.proto
    while current is not None:
        captured = sorted(set(reads(current)) - set(current.input))
        name = next(name for name in [*current.input, *captured] if name in node.dependent)
        path.append(name)
        current = None if name in targets else producers.get(name)
    return path[::-1]
