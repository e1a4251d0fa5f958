"""A model's file with trained values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from numpy.typing import NDArray

from onnxstep.graphs.exported import separated
from onnxstep.graphs.initial import METADATA_KEY, STATE_KEY
from onnxstep.graphs.nodes import copied
from onnxstep.graphs.parameters import parameters, state


def with_values(model: onnx.ModelProto, values: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """Copy of the model, as an ordinary ONNX file, that stores these parameters and this state.

    ``values`` has an array for each of them by name.
    """
    stored = copied(separated(model))
    weights = {each.name for each in (*parameters(stored), *state(stored))}
    graph = stored.graph
    for places in (graph.input, graph.initializer):
        inputs = [place for place in places if place.name not in weights]
        del places[:]
        places.extend(inputs)
    graph.initializer.extend(
        onnx.numpy_helper.from_array(values[name], name) for name in sorted(weights)
    )
    lists = {METADATA_KEY, STATE_KEY}
    metadata = {entry.key: entry.value for entry in stored.metadata_props if entry.key not in lists}
    onnx.helper.set_model_props(stored, metadata)
    return stored
