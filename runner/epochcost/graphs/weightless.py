"""Remove the weights from an ONNX file, so that git can store it and people can read it.

Each parameter becomes a graph input. The file keeps its distribution, from which trials draw
values: uniform with the same standard deviation, or constant if all values are equal.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epochcost.errors import ModelError
from epochcost.graphs.weight_bits import stored_bits
from onnxstep.graphs.exported import separated
from onnxstep.graphs.importer_quirks import initializers_apart, weights_to_initializers
from onnxstep.graphs.initial import METADATA_KEY, STATE_KEY, listed_parameters
from onnxstep.graphs.loading import external_files, load_external_data, load_model_bytes
from onnxstep.graphs.parameters import parameters, state
from onnxstep.graphs.tensors import check_tensors


def weightless(path: Path) -> onnx.ModelProto:
    """The model in the file ``path`` without weights; the file may have any size.

    Raises ModelError with the path if the file is unreadable or stores no floating-point weights.
    """
    external_files(path)
    model = onnx.load_model(path, load_external_data=False)
    try:
        load_external_data(model, path.parent, sys.maxsize)
        check_tensors(model)
        initializers_apart(model)
        weights_to_initializers(model)
        _require_weights(model)
        drawn = _without_values(separated(model))
        parameters(load_model_bytes(drawn.SerializeToString()))
        return drawn
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _require_weights(model: onnx.ModelProto) -> None:
    if bits := stored_bits(model):
        raise ModelError(
            f"expected weights in floats, got some of {min(bits)} bits: keep the file as it is, or "
            "build the model with -p fp32"
        )
    if listed_parameters(model) is not None or not parameters(model):
        raise ModelError("expected an ONNX file that stores weights; this one has none")


def _without_values(model: onnx.ModelProto) -> onnx.ModelProto:
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    lists = {METADATA_KEY: parameters(model), STATE_KEY: state(model)}
    texts = {entry.key: entry.value for entry in model.metadata_props}
    for key, entries in lists.items():
        tensors = [stored[entry.name] for entry in entries]
        if tensors:
            drawn = {each.name: {**_first(each), "seed": at} for at, each in enumerate(tensors)}
            texts[key] = json.dumps(drawn, separators=(",", ":"))
        for tensor in tensors:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, [*tensor.dims])
            model.graph.input.append(value)
    drawn_names = {entry.name for entries in lists.values() for entry in entries}
    rest = [tensor for name, tensor in stored.items() if name not in drawn_names]
    del model.graph.initializer[:]
    model.graph.initializer.extend(rest)
    helper.set_model_props(model, texts)
    return model


def _first(tensor: onnx.TensorProto) -> dict[str, str | float]:
    values = numpy_helper.to_array(tensor)
    first = values.flat[0] if values.size else values.dtype.type(0)
    if (values == first).all():
        return {"distribution": "constant", "scale": float(first)}
    wide = values.astype(float)
    if not np.isfinite(wide).all():
        raise ModelError(f"weight {tensor.name!r}: expected numbers, got some infinite or NaN")
    return {"distribution": "uniform", "scale": math.sqrt(3) * float(np.std(wide))}
