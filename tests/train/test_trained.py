"""An exported file stores trained values, with merged tensors apart."""

from __future__ import annotations

import numpy as np
import onnx

from epochcost.train.state import with_values
from exports import merged
from onnxstep.graphs.parameters import materialise


def test_merged_tensors_are_stored_apart() -> None:
    """Each tensor that an exporter merged is stored with its own trained value."""
    model = merged()
    values = materialise(model)
    values["1.norm.bias"] = np.full(4, 7, np.float32)
    trained = with_values(model, values)
    onnx.checker.check_model(trained)
    np.testing.assert_array_equal(materialise(trained)["1.norm.bias"], [7, 7, 7, 7])
    np.testing.assert_array_equal(materialise(trained)["0.norm.bias"], [0, 0, 0, 0])
