"""Judge a test of the suite: compare the gradient graph of its model with finite differences.

For a model f, direction v and cotangents u: v · VJP(u) = d/dt u · f(x + t v). The right side is a
central difference in float64.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, defs

from onnxstep import registry, vjp_graph
from onnxstep.errors import ModelError
from onnxstep.forward import keep_outputs
from oracle.evaluators import (
    RUNTIME_OPSET,
    CannotRunError,
    Evaluator,
    Run,
    reference,
    runtime_double,
    runtime_single,
    with_all_outputs,
)
from oracle.posed import (
    NothingToDifferentiateError,
    Posed,
    is_float,
    opset_of,
    posed,
    seed_of,
    stamped,
)
from oracle.precision import in_type
from oracle.slope import STEPS, NotSmoothError, Slope, Slopes, slopes
from oracle.suite import Array, SuiteCase

_NO_RULE = "it has no gradient rule"
# Largest number of input elements for the reference evaluator, which is written in Python.
_LARGE = 20_000


class Answer(enum.StrEnum):
    """The possible results of judging a test of ONNX's backend suite."""

    CHECKED = "differentiated and checked"
    ZERO = "derivative always zero"
    REFUSED = "refused with a reason"
    NO_RULE = "no rule"
    NO_FLOAT = "no float tensor to differentiate"
    UNDEFINED = "intermediate values are not numbers"
    UNJUDGED = "no evaluator computes the operator"
    WRONG = "wrong"


@dataclass(frozen=True)
class Verdict:
    """The result of judging the test ``case`` of ONNX's backend suite.

    ``reason`` explains the ``answer``, names wrong gradients, and may be empty. ``agreed`` lists
    the evaluators that compute the right gradients from the gradient graph. ``absent`` lists, with
    their errors, evaluators that fail or compute wrong outputs; their gradients are not judged.
    """

    case: SuiteCase
    answer: Answer
    reason: str = ""
    agreed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


# Known flaws of onnx 1.23.2's reference evaluator.
FLAWED_FORWARD = {
    "DynamicQuantizeLinear": "it rounds to float32",
}
FLAWED_GRADIENT = {"MaxPool": "its Indices are wrong where windows overlap"}
# Tolerance of each evaluator, relative to the terms of the slope.
_TOLERANCES = {"reference": 1e-6, "onnxruntime64": 1e-6, "onnxruntime32": 2e-3}
# Rounding tolerance of each evaluator, relative to the terms of the projected outputs.
_FLOORS = {"reference": 0.0, "onnxruntime64": 0.0, "onnxruntime32": 1e-5}


def judge(case: SuiteCase) -> Verdict:
    """Differentiate the model of a test, and compare its gradients with finite differences."""
    if not all(value.type.HasField("tensor_type") for value in case.model.graph.input):
        return Verdict(case, Answer.NO_FLOAT, "its inputs are sequences or optionals")
    try:
        question = posed(case)
    except NothingToDifferentiateError as error:
        answer = Answer.ZERO if "output" in str(error) else Answer.NO_FLOAT
        return Verdict(case, answer, str(error))
    try:
        backward = vjp_graph(question.model, list(question.inputs))
    except ModelError as error:
        answer = Answer.NO_RULE if _NO_RULE in str(error) else Answer.REFUSED
        return Verdict(case, answer, str(error))
    return _compared(case, question, backward)


def _compared(case: SuiteCase, question: Posed, backward: onnx.ModelProto) -> Verdict:
    refusals = []
    for name, evaluator, model in _forward_evaluators(case.op_type, question, backward):
        try:
            run = evaluator(model)
            _require_same_outputs(case.outputs, run(question.inputs))
            there, slopes_there = _smooth_question_and_slopes(question, run, seed_of(case))
        except (CannotRunError, NotSmoothError, DisagreementError) as error:
            refusals.append(f"{name}: {error}")
        else:
            return _against(case, there, backward, slopes_there, run(there.inputs))
    answer = Answer.ZERO if is_zero(case) else Answer.UNJUDGED
    return Verdict(case, answer, "; ".join(refusals))


def _forward_evaluators(
    op_type: str, question: Posed, backward: onnx.ModelProto
) -> list[tuple[str, Evaluator, onnx.ModelProto]]:
    """The ways of computing the outputs of the test ``question``, in the order to try them.

    A way has a name, an evaluator, and the float64 model to evaluate. The last way's model consists
    of the nodes of the gradient graph ``backward`` that compute the outputs.
    """
    exact = question.exact
    order: list[tuple[str, Evaluator, onnx.ModelProto]] = [
        ("reference", reference, exact),
        ("onnxruntime64", runtime_double, exact),
    ]
    ways = [
        *(order[::-1] if _is_large(question) else order),
        ("body", reference, forward_of(backward)),
    ]
    return ways[1:] if op_type in FLAWED_FORWARD else ways


def _is_large(question: Posed) -> bool:
    return sum(x.size for x in question.inputs.values()) > _LARGE


def forward_of(backward: onnx.ModelProto) -> onnx.ModelProto:
    """A float64 copy of a gradient graph, reduced to nodes that compute the model's outputs."""
    names = [v.name for v in backward.graph.output if not v.name.endswith("_gradient")]
    model = keep_outputs(in_type(backward, TensorProto.DOUBLE), names)
    for value in [v for v in model.graph.input if v.name.endswith("_cotangent")]:
        model.graph.input.remove(value)
    return model


class DisagreementError(Exception):
    """The outputs of an evaluator differ from the expected outputs."""


def _require_same_outputs(expected: Mapping[str, Any], computed: Mapping[str, Array]) -> None:
    """Raise DisagreementError if a float output has another shape or differs by over 1 % + 0.001.

    The tolerance allows for outputs that were rounded to fp16.
    """
    for name, y in expected.items():
        if is_float(y):
            same = computed[name].shape == y.shape and np.allclose(
                computed[name], np.asarray(y, np.float64), rtol=1e-2, atol=1e-3, equal_nan=True
            )
            if not same:
                raise DisagreementError(f"output {name!r} is not what is expected")


def _smooth_question_and_slopes(question: Posed, run: Run, seed: int) -> tuple[Posed, Slopes]:
    """Move the inputs of a test slightly, until the model is smooth there.

    Returns the test with the moved inputs, and the model's slopes along random directions there.
    ``run`` computes the outputs of the model. There is an attempt for each step size in ``STEPS``,
    each with other random moves. Raises NotSmoothError if all attempts fail.
    """
    numbers = _finite(run(question.inputs), question.outputs)
    for attempt, step in enumerate(STEPS):
        there = question.moved(seed + attempt)
        try:
            if _finite(run(there.inputs), there.outputs) != numbers:
                raise NotSmoothError("an output stops being a number nearby")
            return there, slopes(run, there.inputs, there.outputs, seed + attempt, step)
        except NotSmoothError as error:
            last = error
    raise last


def _finite(got: Mapping[str, Array], names: Sequence[str]) -> list[int]:
    return [int(np.isfinite(got[name]).sum()) for name in names]


def _against(
    case: SuiteCase,
    there: Posed,
    backward: onnx.ModelProto,
    slopes_there: Slopes,
    outputs: Mapping[str, Array],
) -> Verdict:
    cotangents = {f"{name}_cotangent": u for name, u in slopes_there.cotangents.items()}
    agreed, absent, faults = [], [], []
    for name, (evaluator, graph) in _evaluators_of_gradient(there, backward).items():
        try:
            got = evaluator(graph)({**there.inputs, **cotangents})
            _require_same_outputs(outputs, got)
        except (CannotRunError, DisagreementError) as error:
            absent.append(f"{name}: {' '.join(str(error).split())}")
            continue
        if case.op_type in FLAWED_GRADIENT and name == "reference":
            continue
        off = list(errors(got, slopes_there.by_input, _TOLERANCES[name], _FLOORS[name]))
        faults += [f"{name}: {fault}" for fault in off]
        agreed += [] if off else [name]
    right = Answer.ZERO if is_zero(case) else Answer.CHECKED
    answer = Answer.WRONG if faults else right if agreed else Answer.UNJUDGED
    if faults and passes_no_number(forward_of(backward), there.inputs):
        answer = Answer.UNDEFINED
    return Verdict(case, answer, "; ".join(faults), tuple(agreed), tuple(absent))


def passes_no_number(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> bool:
    """Whether a node of ``model`` computes a float output with NaN (no number) as an element.

    In ONNX's backend suite, this happens in a softmax whose elements are all masked.
    """
    got = reference(with_all_outputs(model))(inputs)
    return any(bool(np.isnan(y).any()) for y in got.values() if np.asarray(y).dtype.kind == "f")


def _evaluators_of_gradient(
    there: Posed, backward: onnx.ModelProto
) -> Mapping[str, tuple[Evaluator, onnx.ModelProto]]:
    runnable = _graph_for_onnx_runtime(there, backward)
    graphs: dict[str, tuple[Evaluator, onnx.ModelProto]] = {}
    if runnable is None or not _is_large(there):
        graphs["reference"] = (reference, in_type(backward, TensorProto.DOUBLE))
    if runnable is not None:
        graphs["onnxruntime64"] = (runtime_double, runnable)
        graphs["onnxruntime32"] = (runtime_single, runnable)
    return graphs


def _graph_for_onnx_runtime(there: Posed, backward: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return ``backward`` if ONNX Runtime supports its opset, or else a new gradient graph.

    The new graph has the newest opset that ONNX Runtime supports. Returns None if the test's model
    cannot be differentiated at this opset.
    """
    if opset_of(backward) <= RUNTIME_OPSET:
        return backward
    try:
        return vjp_graph(stamped(there.model, RUNTIME_OPSET), list(there.inputs))
    except ModelError:
        return None


def errors(
    got: Mapping[str, Array], slopes_there: Mapping[str, Slope], tolerance: float, floor: float
) -> Iterator[str]:
    """Yield a line for each input whose gradient has a wrong shape or disagrees with its slope.

    ``got`` has the gradients. ``slopes_there`` has, by input, the derivative along a direction,
    called slope. Let t be the elementwise product of a gradient and the slope's ``direction``. The
    sum of t may differ from the slope's ``value`` by noise + floor * level + tolerance * max(scale,
    norm of t). ``noise``, ``level`` and ``scale`` are fields of the Slope. ``floor`` allows for
    rounding errors in proportion to the outputs.
    """
    for name, slope in slopes_there.items():
        gradient, v = got[f"{name}_gradient"], slope.direction
        if gradient.shape != v.shape:
            yield f"{name}: the gradient has the shape {gradient.shape} instead of {v.shape}"
            continue
        terms = np.where(v == 0, 0.0, gradient * v)
        value = float(np.sum(terms))
        allowed = (
            tolerance * max(slope.scale, float(np.linalg.norm(terms)))
            + slope.noise
            + floor * slope.level
        )
        if not abs(value - slope.value) <= allowed:
            yield f"{name}: v·g {value:.9g}, slope {slope.value:.9g} of terms {slope.scale:.3g}"


def is_zero(case: SuiteCase) -> bool:
    """Whether the tested operator is registered as having a zero derivative."""
    versions = {entry.domain: entry.version for entry in case.model.opset_import}
    node = case.node
    since = defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain).since_version
    return isinstance(registry.answer(node.domain, node.op_type, since), registry.Zero)
