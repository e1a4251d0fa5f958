"""The objective of a training step: a weighted sum of losses, and its gradient at the outputs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx

from onnxstep.builder import Value
from onnxstep.errors import ModelError
from onnxstep.forward import Forward, keep_outputs, names
from onnxstep.graphs.choices import choose, unknown_name
from onnxstep.graphs.tensors import FLOAT_TYPES
from onnxstep.losses import LOSSES, Loss, LossFunction


@dataclass(frozen=True)
class Term:
    """A ``loss`` of ``output`` (None: the model's only float output), times ``weight``."""

    loss: str | LossFunction = "softmax_cross_entropy"
    output: str | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Objective:
    """The scalar to minimise, its gradients by output name, and each term's target, if any."""

    value: Value
    cotangents: Mapping[str, Value]
    targets: tuple[Value | None, ...]

    @property
    def target_inputs(self) -> list[Value]:
        """The graph inputs that receive the targets."""
        return [target for target in self.targets if target is not None]


def terms_of(loss: str | LossFunction | Sequence[Term], output: str | None) -> tuple[Term, ...]:
    """The terms of ``loss``; raises ModelError for an empty list or a list with an ``output``."""
    if isinstance(loss, Sequence) and not isinstance(loss, str):
        if not loss or output is not None:
            raise ModelError(
                "loss: expected one loss with its output, or at least one term, each with its own "
                f"output, got {len(loss)} terms and the output {output!r}"
            )
        return tuple(loss)
    return (Term(loss, output),)


def keep_term_outputs(
    model: onnx.ModelProto, terms: Sequence[Term], carried: Collection[str] = ()
) -> onnx.ModelProto:
    """Copy the model with only the nodes that a term of the loss or a carried output needs.

    Returns the model itself if an output is missing, or if a term's output is not float. A later
    error can then list all outputs. ``carried`` names outputs that feed inputs of the next step.
    """
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
    floats = [name for name, kind in kinds.items() if kind in FLOAT_TYPES]
    only = floats[0] if len(floats) == 1 else ""
    names_of_terms = {term.output or only for term in terms}
    if not (names_of_terms.issubset(floats) and kinds.keys() >= set(carried)):
        return model
    return keep_outputs(model, names_of_terms | set(carried))


def objective(forward: Forward, terms: Sequence[Term]) -> Objective:
    """Emit the sum of the terms; their target inputs are called ``target``, ``target_2``, ….

    Raises ModelError for an unknown loss or output, and if a loss does not fit its output.
    """
    built = [_built(forward, term, index) for index, term in enumerate(terms)]
    by_output: dict[str, list[Value]] = {}
    for output, loss in built:
        by_output.setdefault(output.name, []).append(loss.cotangent)
    return Objective(
        _total([loss.value for _, loss in built]),
        {name: _total(parts) for name, parts in by_output.items()},
        tuple(loss.target for _, loss in built),
    )


def _built(forward: Forward, term: Term, index: int) -> tuple[Value, Loss]:
    output = _output(forward, term.output)
    rule = choose("loss", LOSSES, term.loss) if isinstance(term.loss, str) else term.loss
    loss = rule.build(output, f"target_{index + 1}" if index else "target")
    if term.weight == 1.0:
        return output, loss
    return output, Loss(loss.value * term.weight, loss.cotangent * term.weight, loss.target)


def _total(values: Sequence[Value]) -> Value:
    return functools.reduce(operator.add, values)


def _output(forward: Forward, name: str | None) -> Value:
    floats = [value for value in forward.outputs if value.is_float]
    if not floats:
        raise ModelError(
            "the model has no float output to train on; export it again so that it returns its "
            "logits or its loss"
        )
    if name is None and len(floats) != 1:
        raise ModelError(
            f"expected the name of the output to train on; the model has {len(floats)} float "
            f"outputs: {', '.join(names(floats))}"
        )
    if name is not None and name not in names(floats):
        raise unknown_name("output", name, names(floats))
    output = floats[0] if name is None else forward.value(name)
    if not output.size:
        raise ModelError(f"output {output.name!r}: expected elements, got shape {output.shape}")
    return output
