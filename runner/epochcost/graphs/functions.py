"""Local functions of a model, put in the place of their calls."""

from __future__ import annotations

import onnx
from onnx import inliner

from epochcost.errors import ModelError
from epochcost.graphs.tensors import one_line


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without local functions; ModelError where a call does not fit its function."""
    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, onnx.checker.ValidationError) as error:
        raise ModelError(
            f"a call does not fit the model's own function: {one_line(error)}"
        ) from None
