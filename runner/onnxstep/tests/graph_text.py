"""Build small models from ONNX's text form, and run graphs on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import parser


def model_of_text(graph: str, opset: int = 21, functions: str = "") -> onnx.ModelProto:
    """A model of ``graph`` and ``functions`` in ONNX's text form, validated by onnx's checker."""
    header = f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>'
    model = parser.parse_model(f"{header}\n{graph}\n{functions}")
    onnx.checker.check_model(model)
    return model


def run(model: onnx.ModelProto, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """All outputs of a model by name, computed on ONNX Runtime's CPU provider."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [info.name for info in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))
