"""ONNX Runtime on the CPU in one thread: opening a graph, and running it by names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
import onnx
from onnx import helper
from onnxruntime import GraphOptimizationLevel, InferenceSession

from onnxstep.graphs.tensors import one_line
from oracle.evaluators import silent
from oracle.suite import Array

_OURS = (
    "bad_alloc",
    "bad allocation",
    "Failed to allocate",
    "AllocateRaw",
    "MemoryError",
    "Numpy type",
)


class RuntimeFailureError(Exception):
    """ONNX Runtime refuses a graph or fails while it runs the graph."""

    @property
    def is_of_the_benchmark(self) -> bool:
        """Whether the memory limit or a type that NumPy lacks is the cause, and not the graph."""
        return any(text in str(self) for text in _OURS)


def open_session(model: str | bytes, *, optimised: bool = True) -> InferenceSession:
    """Open a session for a path or a serialized model. Raises RuntimeFailureError."""
    options = silent()
    if not optimised:
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions share no base class
        raise RuntimeFailureError(one_line(error)) from None


def runs(session: InferenceSession) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    """A function that runs a session by names of inputs and outputs.

    Inputs are cast to the session's types, and missing inputs are zero. Raises RuntimeFailureError.
    """
    names = [value.name for value in session.get_outputs()]
    inputs = {value.name: (_dtype(value.type), value.shape) for value in session.get_inputs()}

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        typed = {
            name: np.asarray(feeds[name], dtype) if name in feeds else np.zeros(shape, dtype)
            for name, (dtype, shape) in inputs.items()
        }
        try:
            return dict(zip(names, session.run(names, typed), strict=True))
        except Exception as error:  # the runtime's exceptions share no base class
            raise RuntimeFailureError(one_line(error)) from None

    return run


def _dtype(kind: str) -> np.dtype[np.generic] | None:
    name = kind.removeprefix("tensor(").removesuffix(")")
    name = {"float": "float32", "double": "float64", "string": "object"}.get(name, name)
    try:
        return np.dtype(name)
    except TypeError:
        return None


def with_inputs(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """A copy of the model in which the stored tensors of these names are inputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    for place in reversed(range(len(graph.initializer))):
        tensor = graph.initializer[place]
        if tensor.name in names:
            kind = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            graph.input.append(kind)
            del graph.initializer[place]
    return copy
