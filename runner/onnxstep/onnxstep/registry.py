"""Table of operators, each with a gradient rule, a zero derivative or a reason for refusal.

A key has the domain, the operator and the opset that last changed the operator's definition. A new
version has no entry, so onnxstep refuses it until somebody has reviewed the new definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.graphs import contrib
from onnxstep.graphs.nodes import node_label, reads


@dataclass(frozen=True)
class Node:
    """A node of the forward graph; ``dependent`` names all values whose gradient is needed."""

    op: Builder
    proto: onnx.NodeProto
    dependent: frozenset[str]

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """The node's inputs in order; None for an omitted optional input."""
        return tuple(self.op.values[name] if name else None for name in self.proto.input)

    def input(self, index: int) -> Value:
        """The input at ``index``; raises ModelError if the input is missing."""
        value = self.optional_input(index)
        if value is None:
            raise ModelError(f"{self.label}: input {index} is missing")
        return value

    def optional_input(self, index: int) -> Value | None:
        """The input at ``index``; None if the node omits the input."""
        name = self.proto.input[index] if index < len(self.proto.input) else ""
        return self.op.values[name] if name else None

    def constant(self, index: int, subject: str) -> NDArray[Any] | None:
        """The array of an optional input, None if omitted; ``subject`` names it in the error.

        Raises ModelError if the input is computed at run time.
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
        """The first input of the node."""
        return self.input(0)

    @property
    def y(self) -> Value:
        """The first output of the node."""
        return self.output(0)

    def output(self, index: int) -> Value:
        """The output at ``index``; if the node omits this output, adds it under a new name."""
        while len(self.proto.output) <= index:
            self.proto.output.append("")
        if not self.proto.output[index]:
            self.proto.output[index] = self.op.fresh(self.proto.op_type)
            self.op.declare_outputs(self.proto)
        return self.op.values[self.proto.output[index]]

    def wants(self, index: int) -> bool:
        """Whether the gradient with respect to the input at ``index`` is needed."""
        return index < len(self.proto.input) and self.proto.input[index] in self.dependent

    def attribute(self, name: str, default: Any = None) -> Any:
        """The node's attribute, or the schema's default, or else ``default``; decodes strings."""
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
        """The node's name and operator, for error messages."""
        return node_label(self.proto)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise ModelError(f"attribute {value!r}: expected text in UTF-8") from None


# Gradient of the loss with respect to an input, or one for each input; None for an input without a
# gradient.
Cotangents = Value | Sequence[Value | None]


# A vector-Jacobian product: from gradients at a node's outputs to gradients at its inputs. A rule
# gets the Builder, the Node, and a cotangent for each float output; None if the loss does not
# depend on this output, but at least one is a value. It adds the backward nodes to the Builder. Its
# gradients may have the shape to which the node broadcasts; the caller sums them.
Rule = Callable[..., Cotangents]


@dataclass(frozen=True)
class Gradient:
    """The operator has a derivative; ``rule`` adds the nodes that compute it."""

    rule: Rule


@dataclass(frozen=True)
class Zero:
    """The derivative is zero wherever it exists, as for shapes, comparisons and rounding."""


@dataclass(frozen=True)
class Refused:
    """onnxstep does not differentiate the operator; ``reason`` says why."""

    reason: str


Answer = Gradient | Zero | Refused
Key = tuple[str, str, int]
# Number of values that an error names at each end of a long path.
_PATH_END = 4
_HOW_TO_ADD_A_RULE = "onnxstep's docs/adding-an-operator.md"
# Reasons why the operators of a domain other than ONNX's default domain have no rule.
_REASON_OF_DOMAIN = {
    contrib.DOMAIN: "ONNX Runtime's optimizer wrote it into this file; use the original export",
    contrib.ML_DOMAIN: "classical models are not trained by gradients; take the loss before them",
}
_ANSWERS: dict[Key, Answer] = {}


def gradient(op_type: str, versions: Iterable[int], domain: str = "") -> Callable[[Rule], Rule]:
    """Decorator that registers a gradient rule for these ``versions`` of an operator."""

    def register(rule: Rule) -> Rule:
        _register(domain, op_type, versions, Gradient(rule))
        return rule

    return register


def zero(op_type: str, versions: Iterable[int]) -> None:
    """Register that these ``versions`` of an operator have a zero derivative; see ``Zero``."""
    _register("", op_type, versions, Zero())


def refused(op_type: str, versions: Iterable[int], reason: str) -> None:
    """Register that an operator is not differentiated; error messages give the ``reason``."""
    _register("", op_type, versions, Refused(reason))


def answer(domain: str, op_type: str, version: int) -> Answer | None:
    """The rule, zero derivative or refusal of an operator version; None if unregistered."""
    return _ANSWERS.get((domain, op_type, version))


def answer_for(op: Builder, proto: onnx.NodeProto) -> Answer | None:
    """The rule, zero derivative or refusal of the node ``proto``; None if unregistered."""
    return answer(proto.domain, proto.op_type, op.since_version(proto))


def refusal(domain: str, op_type: str) -> str | None:
    """Reason why onnxstep refuses an operator (its first refused version), None if it does not."""
    for (owner, name, _), entry in _ANSWERS.items():
        if (owner, name) == (domain, op_type) and isinstance(entry, Refused):
            return entry.reason
    return None


def registered() -> dict[Key, Answer]:
    """A copy of the whole table, by domain, operator and version."""
    return dict(_ANSWERS)


def _register(domain: str, op_type: str, versions: Iterable[int], value: Answer) -> None:
    for version in versions:
        if (domain, op_type, version) in _ANSWERS:
            raise ValueError(f"two answers are registered for {domain}::{op_type} {version}")
        _ANSWERS[domain, op_type, version] = value


def undifferentiable(
    node: Node, answer_of_node: Answer | None, nodes: Sequence[onnx.NodeProto], targets: Set[str]
) -> ModelError:
    """The error for a node without a gradient rule: operator, version, reason and path of values.

    ``nodes`` are the whole graph. The path to the node starts at a value in ``targets``.
    """
    proto, version = node.proto, node.op.since_version(node.proto)
    if isinstance(answer_of_node, Refused):
        reason = answer_of_node.reason
    else:
        reason = _REASON_OF_DOMAIN.get(proto.domain, "it has no gradient rule")
    path = " -> ".join(_shortened(_path_from_targets(node, nodes, targets)))
    return ModelError(
        f"node {proto.name or proto.output[0]!r}: operator {proto.domain or 'ai.onnx'}::"
        f"{proto.op_type} (version {version}) cannot be differentiated: {reason}; "
        f"the node lies on the path {path} -> loss. Freeze the parameters before the node, export "
        f"the model without it, or add a rule: {_HOW_TO_ADD_A_RULE}"
    )


def _shortened(path: list[str]) -> list[str]:
    left_out = len(path) - 2 * _PATH_END
    if left_out <= 1:
        return path
    return [*path[:_PATH_END], f"({left_out} more)", *path[-_PATH_END:]]


def _path_from_targets(node: Node, nodes: Sequence[onnx.NodeProto], targets: Set[str]) -> list[str]:
    """Names of the values on one path from a target to the first output of ``node``."""
    producers = {name: proto for proto in nodes for name in proto.output}
    path = [node.proto.output[0]]
    current: onnx.NodeProto | None = node.proto
    while current is not None:
        captured = sorted(set(reads(current)) - set(current.input))
        name = next(name for name in [*current.input, *captured] if name in node.dependent)
        path.append(name)
        current = None if name in targets else producers.get(name)
    return path[::-1]
