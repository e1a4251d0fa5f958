"""Run models on onnx's reference evaluator or on ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from exact_operators import LRN, Erf, GlobalMaxPool
from graph_text import session
from onnxstep.graphs.nodes import copied
from oracle.pooling import AveragePool
from oracle.precision import in_type
from oracle.suite import Array

# Maps float inputs by name to outputs by name.
Run = Callable[[Mapping[str, Array]], dict[str, Array]]
Evaluator = Callable[[onnx.ModelProto], Run]
_SILENT = 4
# The newest opset that ONNX Runtime 1.31 loads.
RUNTIME_OPSET = 26


class CannotRunError(Exception):
    """The evaluator does not implement the model, or fails on the model."""


class Gelu(OpRun):
    """Gelu in the precision of its input; onnx 1.23.2 computes it in float32."""

    op_domain = ""

    def _run(self, x: Array, approximate: str | None = None) -> tuple[Array]:
        if approximate == "tanh":
            inner = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        else:
            inner = np.vectorize(math.erf, otypes=[x.dtype])(x / math.sqrt(2))
        return (0.5 * x * (1 + inner),)


_EXACT = [LRN, AveragePool, Erf, Gelu, GlobalMaxPool]


def reference(model: onnx.ModelProto, more: Sequence[type[OpRun]] = ()) -> Run:
    """Return a function that runs ``model``, in float64, on the reference evaluator.

    ``more`` has additional operators. ``reference`` and the returned function raise
    CannotRunError if the evaluator fails.
    """
    try:
        evaluator = ReferenceEvaluator(model, new_ops=[*_EXACT, *more])
    except Exception as error:
        raise CannotRunError(str(error)) from error
    names = [value.name for value in model.graph.output]

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            try:
                answers = dict(zip(names, evaluator.run(names, dict(feeds)), strict=True))
            except Exception as error:
                raise CannotRunError(str(error)) from error
        if any(np.asarray(y).dtype == np.float32 for y in answers.values()):
            raise CannotRunError("it computes in float32")
        return answers

    return run


def with_all_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model that returns the outputs of all nodes."""
    whole = copied(model)
    names = [name for node in model.graph.node for name in node.output if name]
    del whole.graph.output[:]
    whole.graph.output.extend(map(helper.make_empty_tensor_value_info, names))
    return whole


def runtime(elem_type: int) -> Evaluator:
    """An evaluator on ONNX Runtime's CPU provider; it converts all floats to ``elem_type``."""
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)

    def on_runtime(model: onnx.ModelProto) -> Run:
        try:
            opened = session(in_type(model, elem_type), silent())
        except Exception as error:
            raise CannotRunError(str(error)) from error
        names = [value.name for value in opened.get_outputs()]

        def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
            typed = {name: np.asarray(x, dtype) for name, x in feeds.items()}
            try:
                return dict(zip(names, opened.run(names, typed), strict=True))
            except Exception as error:
                raise CannotRunError(str(error)) from error

        return run

    return on_runtime


def silent() -> onnxruntime.SessionOptions:
    """Session options for a single thread and no log."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = 1
    return options


runtime_double = runtime(TensorProto.DOUBLE)
runtime_single = runtime(TensorProto.FLOAT)
