"""The vector-Jacobian product of a model as an ONNX graph of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from epochcost.autodiff.backward import pull_back
from epochcost.autodiff.builder import Value
from epochcost.autodiff.forward import Forward, close_model, open_model
from epochcost.autodiff.passes import prepare
from epochcost.errors import ModelError


def vjp_graph(
    model: onnx.ModelProto, wrt: Sequence[str], dimensions: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """The model, differentiated exactly as written.

    To the model's inputs and outputs come, for each float output ``y``, an input ``y_cotangent``
    of the same shape and, for each name in ``wrt`` (float inputs or initializers), an output
    ``<name>_gradient`` of that value's shape; zeros where nothing depends on it. ``dimensions``
    binds symbolic dimensions. Raises ModelError for unknown names, unbound dimensions and
    operators that cannot be differentiated (naming node, operator, version and path).
    """
    forward = open_model(prepare(model, dimensions=dimensions, varying=wrt))
    op = forward.op
    sources = [_source(forward, name) for name in wrt]
    cotangents = {
        y.name: op.input(f"{y.name}_cotangent", y.shape, y.elem_type)
        for y in forward.outputs
        if y.is_float
    }
    found = pull_back(op, forward.nodes, cotangents, [source.name for source in sources])
    gradients = [
        op.rename(
            found.get(source.name) or op.zeros(source.shape, source.elem_type),
            f"{source.name}_gradient",
        )
        for source in sources
    ]
    return close_model(
        forward,
        [*forward.inputs, *cotangents.values()],
        [*forward.outputs, *gradients],
        "vector_jacobian_product",
    )


def _source(forward: Forward, name: str) -> Value:
    op = forward.op
    held = [tensor.name for tensor in op.initializers]
    choices = [*(value.name for value in forward.inputs), *held]
    if name not in choices:
        raise ModelError(
            f"wrt {name!r}: expected an input or initializer; choices are {', '.join(choices)}"
        )
    if not op.values[name].is_float:
        raise ModelError(f"wrt {name!r}: expected a float tensor, got integers or booleans")
    return op.values[name]
