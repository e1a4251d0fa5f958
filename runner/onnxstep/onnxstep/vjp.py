"""Build the vector-Jacobian product of a model as an ONNX graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import onnx

from onnxstep.backward import pull_back
from onnxstep.builder import Value
from onnxstep.errors import ModelError
from onnxstep.forward import Forward, close_model, open_model
from onnxstep.graphs.choices import unknown_name
from onnxstep.graphs.tensors import FLOAT_TYPES
from onnxstep.passes import prepare


def vjp_graph(
    model: onnx.ModelProto, wrt: Sequence[str], dimensions: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """Return a model that also computes gradients, without training mode, loss or optimizer.

    Each float output ``y`` gets an input ``y_cotangent``: the gradient of some scalar at ``y``.
    Each tensor in ``wrt`` (names or shell patterns) gets an output ``<name>_gradient``. Raises
    ModelError for unknown names, dimensions without a size, and operators without a gradient.
    """
    chosen = _matching_tensor_names(model, wrt)
    forward = open_model(prepare(model, dimensions=dimensions, varying=chosen))
    op = forward.op
    sources = _sources(forward, chosen)
    cotangents = {
        y.name: op.input(f"{y.name}_cotangent", y.shape, y.elem_type)
        for y in forward.outputs
        if y.is_float
    }
    cotangents_found = pull_back(op, forward.nodes, cotangents, [source.name for source in sources])
    gradients = [
        op.rename(
            cotangents_found.get(source.name) or op.zeros(source.shape, source.elem_type),
            f"{source.name}_gradient",
        )
        for source in sources
    ]
    inputs, outputs = [*forward.inputs, *cotangents.values()], [*forward.outputs, *gradients]
    return close_model(forward, inputs, outputs, "vector_jacobian_product")


def _matching_tensor_names(model: onnx.ModelProto, patterns: Iterable[str]) -> list[str]:
    """Names of the tensors that match ``patterns``, and the patterns that match no tensor."""
    graph = model.graph
    kinds = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    kinds |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    floats = [name for name, kind in kinds.items() if kind in FLOAT_TYPES]
    chosen: dict[str, None] = {}
    for pattern in patterns:
        if pattern in kinds:
            chosen[pattern] = None
        else:
            matches = [name for name in floats if fnmatchcase(name, pattern)]
            chosen |= dict.fromkeys(matches or [pattern])
    return list(chosen)


def _sources(forward: Forward, names: Iterable[str]) -> list[Value]:
    op = forward.op
    choices = [value.name for value in forward.inputs] + [tensor.name for tensor in op.initializers]
    for name in names:
        if name not in choices:
            raise unknown_name("wrt", name, choices)
        if not op.values[name].is_float:
            raise ModelError(f"wrt {name!r}: expected a float tensor, got integers or booleans")
    return [op.values[name] for name in names]
