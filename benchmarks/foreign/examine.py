"""Take one file through its stages, from ONNX Runtime to finite differences.

Each stage is reported when it begins, so that the stage is known in which a process died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx
from onnx import helper
from onnx.external_data_helper import uses_external_data
from onnxruntime import InferenceSession

from epochcost.errors import EpochcostError
from foreign.answers import Answer, Finding, lacks
from foreign.points import NoPointError, Point, find_point
from foreign.runtime import RuntimeFailureError, open_session, runs, with_inputs
from foreign.slopes import DIFFERENCES, Question, compare
from onnxstep import StepOptions, TrainingStep, training_step, vjp_graph
from onnxstep.graphs.binding import symbolic_dimensions
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise, parameters
from onnxstep.graphs.tensors import FLOAT_TYPES, one_line, stored_tensors
from oracle.evaluators import Run

READING, LOADING = "reading", "load_model"
RUNTIME, GRADIENT, STEP = "ONNX Runtime", "vjp_graph", "training_step"
GRADIENT_RUN, STEP_RUN = "vjp_graph in ONNX Runtime", "training_step in ONNX Runtime"
OURS = frozenset({LOADING, GRADIENT, STEP})
_RATE, _POINTS = 1e-3, 3
_NOTHING_TRAINED = "no trainable parameter"
# Outputs of one graph optimised in two ways, in float32 and in half precision.
_WITHIN, _WITHIN_HALF = 1e-3, 3e-2
# Smaller outputs may be the rounding error of a difference.
_SMALLEST = 1e-3
ResultT = TypeVar("ResultT")


class Report(Protocol):
    """Receiver of an examination's stages and findings."""

    def stage(self, name: str) -> None:
        """Begin a stage, which has its own limits."""

    def add(self, finding: Finding) -> None:
        """Record a finding of the stage."""


@dataclass(frozen=True)
class _Task:
    """A loaded file, and its session in ONNX Runtime."""

    path: Path
    model: onnx.ModelProto
    session: InferenceSession | None
    problem: str
    report: Report
    outputs: tuple[str, ...]
    wrt: tuple[str, ...]
    trained: bool

    def attempt(self, stage: str, call: Callable[[], ResultT]) -> ResultT | None:
        """The result of one of epochcost's functions. A refusal or a traceback is reported."""
        return _attempt(self.report, stage, call, self.model, loads=self.session is not None)


def examine(path: Path, report: Report, fatal: str = "") -> None:
    """Take a file through all stages that it reaches.

    ``fatal`` says how ONNX Runtime ended an earlier process on this file. With ``fatal``, ONNX
    Runtime does not run the file again.
    """
    report.stage(READING)
    raw = _parsed(path)
    missing = raw and next(_missing_data(raw, path.parent), None)
    if missing:
        report.add(Finding(READING, Answer.NO_DATA, f"there is no file {missing!r}"))
        return
    report.stage(RUNTIME)
    session, problem = None, fatal
    if not fatal:
        try:
            session = open_session(str(path))
        except RuntimeFailureError as error:
            problem = str(error)
    loads = session is not None
    model = _attempt(report, LOADING, lambda: load_model(path), raw, loads=loads)
    stored = model and _attempt(report, LOADING, lambda: parameters(model), model, loads=loads)
    if model and stored is not None:
        floats, outputs = _floats(model)
        trained = [parameter.name for parameter in stored if parameter.name not in floats]
        if outputs and (floats or trained):
            wrt = (*floats, *trained)
            task = _Task(path, model, session, problem, report, outputs, wrt, bool(trained))
            _differentiate(task)
        else:
            why = "no float goes in" if outputs else "no float comes out"
            report.add(Finding(LOADING, Answer.NOTHING, why))


def _parsed(path: Path) -> onnx.ModelProto | None:
    try:
        return onnx.load_model(path, load_external_data=False)
    except Exception:  # protobuf raises many types for bytes that are no model
        return None


def _missing_data(model: onnx.ModelProto, folder: Path) -> Iterator[str]:
    for tensor in filter(uses_external_data, stored_tensors(model)):
        location = next((e.value for e in tensor.external_data if e.key == "location"), "")
        if not (folder / location).is_file():
            yield location


def _attempt(
    report: Report,
    stage: str,
    call: Callable[[], ResultT],
    model: onnx.ModelProto | None,
    *,
    loads: bool,
) -> ResultT | None:
    report.stage(stage)
    try:
        return call()
    except EpochcostError as error:
        message = str(error)
        if not message.startswith(_NOTHING_TRAINED):
            without = tuple(lacks(message, model)) if loads else ()
            refusal = Answer.MISLEADING if without else Answer.REASONED
            report.add(Finding(stage, refusal if loads else Answer.AS_RUNTIME, message, without))
    except MemoryError:
        report.add(Finding(stage, Answer.MEMORY, "out of memory"))
    except Exception as error:  # every traceback counts
        report.add(Finding(stage, Answer.TRACEBACK, _traced(error)))
    return None


def _traced(error: Exception) -> str:
    """The error with the last line of epochcost's code in its traceback."""
    place, trace = "", error.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        if "epochcost" in code.co_filename:
            place = f"{Path(code.co_filename).name}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}: {one_line(error)}"


def _floats(model: onnx.ModelProto) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the float inputs without a stored value, and of the float outputs."""
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs, outputs = (
        tuple(v.name for v in values if v.type.tensor_type.elem_type in FLOAT_TYPES)
        for values in (model.graph.input, model.graph.output)
    )
    # Regions and scales are settings of a Resize, not data with a gradient.
    resizes = (node for node in model.graph.node if node.op_type in ("Resize", "Upsample"))
    stored.update(name for node in resizes for name in node.input[1:])
    return tuple(name for name in inputs if name not in stored), outputs


def _differentiate(task: _Task) -> None:
    """Build the gradient graph and the step of a file, run them and compare."""
    point = _point(task)
    if point is None:
        # Nothing can be compared, and our refusal agrees with the runtime's.
        sizes = dict.fromkeys(symbolic_dimensions(task.model), 2)
        for stage, call in _calls(task, sizes).items():
            _attempt(task.report, stage, call, None, loads=False)
        return
    calls = _calls(task, point.dimensions)
    step = task.attempt(STEP, calls[STEP]) if task.trained else None
    backward = task.attempt(GRADIENT, calls[GRADIENT])
    if point.is_contrary:
        why = "its outputs have other shapes than declared at all integers tried"
        task.report.add(Finding(RUNTIME, Answer.UNJUDGED, why))
        return
    for stage, check in (
        (STEP_RUN, step and partial(_two_steps, task, step, point)),
        (GRADIENT_RUN, backward and partial(_gradients, task, backward, point)),
    ):
        if check:
            _checked(task.report, stage, check)


def _point(task: _Task) -> Point | None:
    """Inputs with which ONNX Runtime runs the file; None, and a finding, if none are known."""
    task.report.stage(RUNTIME)
    if task.session is None:
        task.report.add(Finding(RUNTIME, Answer.AS_RUNTIME, task.problem))
        return None
    try:
        return find_point(task.model, task.path.parent, runs(task.session))
    except (NoPointError, MemoryError) as error:
        why = f"no inputs were found that it runs with: {one_line(error)}"
        task.report.add(Finding(RUNTIME, Answer.UNJUDGED, why))
        return None


def _calls(task: _Task, sizes: Mapping[str, int]) -> dict[str, Callable[[], Any]]:
    return {
        GRADIENT: lambda: vjp_graph(task.model, task.wrt, sizes),
        STEP: lambda: training_step(
            task.model, StepOptions(loss="mse", output=task.outputs[0], dimensions=sizes)
        ),
    }


def _checked(report: Report, stage: str, check: Callable[[], None]) -> None:
    report.stage(stage)
    try:
        check()
    except RuntimeFailureError as error:
        answer = Answer.UNJUDGED if error.is_of_the_benchmark else Answer.FAILS
        report.add(Finding(stage, answer, str(error)))
    except MemoryError:
        report.add(Finding(stage, Answer.UNJUDGED, "out of memory"))


def _two_steps(task: _Task, step: TrainingStep, point: Point) -> None:
    """Take two training steps on one batch. The loss need not be a number."""
    run = runs(open_session(step.model.SerializeToString()))
    values = {**materialise(task.model), **point.feeds}
    for carried in step.carried:
        dtype = helper.tensor_dtype_to_np_dtype(carried.elem_type)
        values.setdefault(carried.input, np.full(carried.shape, carried.fill, dtype))
    values[step.learning_rate] = np.array(_RATE)
    for _ in range(2):
        answers = run(values)
        values |= {carried.input: answers[carried.output] for carried in step.carried}


def _gradients(task: _Task, backward: onnx.ModelProto, point: Point) -> None:
    """Compare the gradient graph's outputs with the file's, then gradients with differences."""
    ours = runs(open_session(backward.SerializeToString()))
    problem = _different_forward(task, ours, point)
    if problem:
        task.report.add(Finding(GRADIENT_RUN, *problem))
        return
    task.report.stage(DIFFERENCES)
    values = {**materialise(task.model), **point.feeds}
    wrt = {name: np.asarray(values[name], np.float64) for name in task.wrt}
    stored = {name: value for name, value in point.feeds.items() if name not in wrt}
    moving = runs(open_session(with_inputs(backward, task.wrt).SerializeToString()))
    try:
        finding = compare(Question(task.model, backward, stored, wrt, task.outputs, moving))
    except Exception as error:  # the evaluator's failure, not ours
        finding = Finding(DIFFERENCES, Answer.UNJUDGED, _traced(error))
    task.report.add(finding)


def _different_forward(task: _Task, ours: Run, point: Point) -> tuple[Answer, str] | None:
    """The answer and message if an output differs from the file's at all tried points, else None.

    At a single point, rounding may flip a choice.
    """
    assert task.session is not None
    theirs, problem = runs(task.session), ""
    for seed in range(_POINTS):
        at = point.redrawn(seed, task.wrt) if seed else point
        expected, got = theirs(at.feeds), ours(at.feeds)
        problem = _first_apart(expected, got)
        if not problem:
            return None
        again = runs(open_session(str(task.path), optimised=False))(at.feeds)
        problem_again = _first_apart(expected, theirs(at.feeds)) or _first_apart(expected, again)
        if problem_again:
            return Answer.UNJUDGED, f"ONNX Runtime's own {problem_again}, in another run or session"
    return Answer.WRONG, problem


def _first_apart(expected: Mapping[str, Any], got: Mapping[str, Any]) -> str:
    """The first output that differs and how it differs; "" if none does."""
    differences = {name: _difference(y, got[name]) for name, y in expected.items() if name in got}
    return next((f"output {name!r} {how}" for name, how in differences.items() if how), "")


def _difference(expected: object, got: object) -> str:
    """How two outputs differ; "" if only by rounding, or if they are no numbers."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind not in "fiub":
        return ""
    y, y_got = expected, np.asarray(got)
    if y.shape != y_got.shape:
        return f"has the shape {y.shape} and {y_got.shape}"
    y, y_got = y.astype(np.float64), y_got.astype(np.float64)
    finite = np.abs(y[np.isfinite(y)])
    scale = max(_SMALLEST, float(finite.max(initial=0.0)))
    within = _WITHIN_HALF if expected.dtype == np.float16 else _WITHIN
    if np.allclose(y, y_got, rtol=within, atol=within * scale, equal_nan=True):
        return ""
    with np.errstate(invalid="ignore"):
        return f"differs by {np.nanmax(np.abs(y - y_got), initial=0.0):.3g} of {scale:.3g}"
