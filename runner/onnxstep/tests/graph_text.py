"""Build small models from ONNX's text form, and run graphs on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper, parser

Array = NDArray[Any]


def model_of_text(
    graph: str, opset: int = 21, functions: str = "", weights: Mapping[str, Array] | None = None
) -> onnx.ModelProto:
    """A model of ``graph`` and ``functions`` in ONNX's text form, validated by onnx's checker.

    ``weights`` has tensors that ``graph`` reads and does not declare, by name.
    """
    header = f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1, "local" : 1]>'
    model = parser.parse_model(f"{header}\n{graph}\n{functions}")
    for name, array in (weights or {}).items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    return model


def shape_of(value: onnx.ValueInfoProto) -> list[int]:
    """The declared sizes of a tensor, with 0 for each symbolic dimension."""
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def random_inputs(model: onnx.ModelProto, seed: int = 7) -> dict[str, Array]:
    """Standard normal float32 numbers for all inputs of a model, by name."""
    rng = np.random.default_rng(seed)
    inputs = sorted(model.graph.input, key=lambda value: value.name)
    return {value.name: rng.standard_normal(shape_of(value)).astype("f4") for value in inputs}


def session(
    model: onnx.ModelProto, options: onnxruntime.SessionOptions | None = None
) -> onnxruntime.InferenceSession:
    """A session of a model on ONNX Runtime's CPU provider."""
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """All outputs of a model by name, computed on ONNX Runtime's CPU provider."""
    opened = session(model)
    names = [info.name for info in opened.get_outputs()]
    return dict(zip(names, opened.run(names, dict(feeds)), strict=True))


def optimized_operators(model: onnx.ModelProto, folder: Path) -> list[str]:
    """The operators of a model after ONNX Runtime's optimization.

    The optimized model is saved in ``folder``.
    """
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    session(model, options)
    return [node.op_type for node in onnx.load(folder / "optimized.onnx").graph.node]
