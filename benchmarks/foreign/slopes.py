"""Compare a file's gradients with finite differences in float64, if an evaluator allows it.

For a direction v of the inputs and cotangents u of the outputs, the chain rule demands v · VJP(u) =
d/dt u · f(x + t v). Tensors move in a few groups of similar magnitude. A gradient counts as wrong
if it is wrong at most of several points at which f is smooth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from contrib_reference import CONTRIBUTED
from exact_operators import OPERATORS
from foreign.answers import Answer, Finding
from foreign.runtime import with_inputs
from onnxstep.graphs.tensors import HALF_TYPES
from oracle.evaluators import CannotRunError, Evaluator, Run, reference, runtime_double
from oracle.judge import (
    FLAWED_FORWARD,
    FLAWED_GRADIENT,
    errors,
    forward_of,
    passes_no_number,
)
from oracle.posed import is_float
from oracle.precision import in_type
from oracle.slope import STEPS, NotSmoothError, Slopes, slopes
from oracle.suite import Array
from recurrent_reference import RECURRENT

DIFFERENCES = "finite differences"
_POINTS, _MOST_GROUPS, _JITTER = 3, 8, 2e-3
# Tolerances relative to the terms of the slope, in float64 and in the file's precision; in a half
# file the rules' constants are half too.
_WITHIN, _WITHIN_HALF = (1e-6, 2e-3), (2e-3, 5e-2)
# Rounding error of float32 outputs, relative to the terms of the projected outputs.
_SINGLE_FLOOR = 1e-5
_SPECIFIC = (*OPERATORS, *RECURRENT, *CONTRIBUTED)


@dataclass(frozen=True)
class Question:
    """A loaded file and its gradient graph at a point.

    ``runs`` runs the gradient graph in the file's precision. ``wrt`` are the differentiated inputs
    and initializers by name, ``fixed`` the other inputs, ``outputs`` the float outputs. Missing
    cotangents are zero.
    """

    model: onnx.ModelProto
    backward: onnx.ModelProto
    fixed: Mapping[str, Array]
    wrt: Mapping[str, Array]
    outputs: Sequence[str]
    runs: Run

    def gradients(self, x: Mapping[str, Array], u: Mapping[str, Array]) -> dict[str, Array]:
        """The gradients by ONNX Runtime in the file's precision."""
        feeds = {**self.fixed, **x, **{f"{name}_cotangent": y for name, y in u.items()}}
        answers = self.runs(feeds).items()
        return {name: y.astype(np.float64) for name, y in answers if is_float(y)}


def compare(question: Question) -> Finding:
    """Compare the gradients with central differences."""
    problems = []
    for name, evaluator, model in _forwards(question):
        try:
            run = evaluator(model)
            _require_same(question, run(question.wrt))
            finding = _judged(question, name, run)
            if "nan" in finding.message and passes_no_number(model, question.wrt):
                raise CannotRunError("values on its way are no numbers")
            return finding
        except (CannotRunError, NotSmoothError) as error:
            problems.append(f"{name}: {' '.join(str(error).split()):.150}")
    return Finding(DIFFERENCES, Answer.UNJUDGED, "; ".join(problems))


def _reference(model: onnx.ModelProto, flawed: Collection[str] = FLAWED_FORWARD) -> Run:
    present = {node.op_type for node in model.graph.node}.intersection(flawed)
    if present:
        raise CannotRunError(f"the reference evaluator's {', '.join(present)} is flawed")
    return reference(model, _SPECIFIC)


def _forwards(question: Question) -> Iterator[tuple[str, Evaluator, onnx.ModelProto]]:
    exact = _fed(in_type(question.model, TensorProto.DOUBLE), question)
    yield "ONNX Runtime", runtime_double, exact
    yield "reference", _reference, exact
    body = _fed(forward_of(question.backward), question)
    yield "body", _reference, body


def _fed(model: onnx.ModelProto, question: Question) -> onnx.ModelProto:
    """A float64 model whose inputs are exactly the moved tensors. Other inputs are stored."""
    fed = with_inputs(model, question.wrt)
    graph = fed.graph
    for place in reversed(range(len(graph.input))):
        name = graph.input[place].name
        if name in question.fixed:
            value = question.fixed[name]
            value = value.astype(np.float64) if is_float(value) else value
            graph.initializer.append(numpy_helper.from_array(value, name))
            del graph.input[place]
    return fed


def _require_same(question: Question, got: Mapping[str, Array]) -> None:
    """Require that the outputs in float64 equal the gradient graph's within a hundredth."""
    ours = question.gradients(question.wrt, {})
    for name in question.outputs:
        scale = max(1e-3, float(np.max(np.abs(got[name]), initial=0.0)))
        same = got[name].shape == ours[name].shape and np.allclose(
            got[name], ours[name], rtol=1e-2, atol=1e-2 * scale, equal_nan=True
        )
        if not same:
            raise CannotRunError(f"output {name!r} differs from float32")


def _judged(question: Question, evaluator: str, run: Run) -> Finding:
    """A right answer if the gradients are right at one of several points, else a wrong one."""
    notes = []
    for seed in range(_POINTS):
        agreed, faults = _at_a_point(question, run, seed)
        notes += faults
        if agreed:
            return Finding(DIFFERENCES, Answer.RIGHT, "; ".join([f"by {evaluator}", *notes]))
    return Finding(DIFFERENCES, Answer.WRONG, "; ".join([f"by {evaluator}", *notes]))


def _at_a_point(question: Question, run: Run, seed: int) -> tuple[bool, list[str]]:
    """Whether the gradients in a precision agree with slopes near a point, and the errors."""
    groups = _groups(question.wrt)
    for attempt, step in enumerate(STEPS):
        x = _moved(question.wrt, seed * len(STEPS) + attempt)
        moving, vectors = _grouped(run, groups, x), _joined(groups, x)
        try:
            measured = slopes(moving, vectors, question.outputs, seed, step)
        except NotSmoothError as error:
            rough = error
            continue
        return _compared(question, groups, x, measured)
    raise rough


def _compared(
    question: Question, groups: Sequence[Sequence[str]], x: Mapping[str, Array], measured: Slopes
) -> tuple[bool, list[str]]:
    kinds = [value.type.tensor_type.elem_type for value in question.backward.graph.value_info]
    exact, coarse = _WITHIN_HALF if HALF_TYPES.intersection(kinds) else _WITHIN
    faults: list[str] = []
    for name, tolerance, floor in (("float64", exact, 0.0), ("float32", coarse, _SINGLE_FLOOR)):
        try:
            got = _gradients(question, name == "float64", x, measured.cotangents)
        except CannotRunError:
            continue
        shapes = [n for n, value in x.items() if got[f"{n}_gradient"].shape != value.shape]
        if shapes:
            return False, [f"the gradient of {shapes[0]!r} has another shape"]
        vectors = {f"{k}_gradient": v for k, v in _joined(groups, got, "_gradient").items()}
        off = list(errors(vectors, measured.by_input, tolerance, floor))
        if not off:
            return True, faults
        if name == "float32" and any(not slope.scale for slope in measured.by_input.values()):
            break  # a gradient of zero, where float32 leaves rounding errors
        index, _, numbers = off[0].partition(": ")
        faults.append(f"{name}: {', '.join(groups[int(index)])[:80]}: {numbers}")
    if not faults:
        raise CannotRunError("nothing computes the gradient exactly")
    return False, faults


def _gradients(
    question: Question, exactly: bool, x: Mapping[str, Array], u: Mapping[str, Array]
) -> Mapping[str, Array]:
    if not exactly:
        return question.gradients(x, u)
    model = _fed(in_type(question.backward, TensorProto.DOUBLE), question)
    feeds = {**x, **{f"{name}_cotangent": y for name, y in u.items()}}
    feeds = {value.name: feeds[value.name] for value in model.graph.input}
    try:
        return runtime_double(model)(feeds)
    except CannotRunError:
        return _reference(model, {*FLAWED_FORWARD, *FLAWED_GRADIENT})(feeds)


def _groups(wrt: Mapping[str, Array]) -> list[list[str]]:
    """The names in a few groups, by the magnitude of their numbers."""
    order = sorted(wrt, key=lambda name: _size(wrt[name]))
    parts = np.array_split(np.arange(len(order)), min(_MOST_GROUPS, len(order)))
    return [[order[index] for index in part] for part in parts]


def _joined(
    groups: Sequence[Sequence[str]], x: Mapping[str, Array], suffix: str = ""
) -> dict[str, Array]:
    return {
        str(index): np.concatenate([np.ravel(x[f"{name}{suffix}"]) for name in group])
        for index, group in enumerate(groups)
    }


def _grouped(run: Run, groups: Sequence[Sequence[str]], like: Mapping[str, Array]) -> Run:
    def grouped(vectors: Mapping[str, Array]) -> dict[str, Array]:
        feeds: dict[str, Array] = {}
        for index, group in enumerate(groups):
            sizes = [like[name].size for name in group]
            parts = np.split(vectors[str(index)], np.cumsum(sizes)[:-1])
            feeds |= {n: p.reshape(like[n].shape) for n, p in zip(group, parts, strict=True)}
        return run(feeds)

    return grouped


def _moved(wrt: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Move all tensors slightly, away from ties and corners."""
    draw = np.random.default_rng(seed)
    return {
        name: x + _JITTER * (_size(x) or 1.0) * draw.standard_normal(x.shape)
        for name, x in wrt.items()
    }


def _size(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2))) if x.size else 0.0
