"""Files as other exporters write them: open dimensions as -1, weights as Constant nodes."""

from __future__ import annotations

import numpy as np
import onnx

from epochcost.graphs.binding import symbolic_dimensions
from epochcost.graphs.loading import load_model_bytes
from epochcost.graphs.parameters import materialise, parameters
from graph_text import model_of_text

WEIGHTS = (
    "w = Constant <value = float[2] {3, 4}> () two = Constant <value = float {2}> () "
    "a = Mul(x, w) b = Mul(a, two) "
)


def loaded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as it comes out of the loader."""
    return load_model_bytes(model.SerializeToString())


def test_weights_in_constant_nodes_are_parameters() -> None:
    """Where a file has no float initializer, constants of several floats are what is trained."""
    model = loaded(model_of_text(f"g (float[n,2] x) => (float[n,2] y) {{ {WEIGHTS} y = Neg(b) }}"))
    assert [parameter.name for parameter in parameters(model)] == ["w"]
    np.testing.assert_array_equal(materialise(model)["w"], [3, 4])
    assert [node.output[0] for node in model.graph.node] == ["two", "a", "b", "y"]


def test_constants_beside_initializers_stay() -> None:
    """A file that has its weights in initializers means its constants as constants."""
    model = loaded(
        model_of_text(
            "g (float[n,2] x) => (float[n,2] y) <float[2] v = {1, 2}> "
            f"{{ {WEIGHTS} y = Mul(b, v) }}"
        )
    )
    assert [parameter.name for parameter in parameters(model)] == ["v"]


def test_minus_one_is_an_open_dimension() -> None:
    """A size of -1 is bound like any other open dimension."""
    model = model_of_text("g (float[n,2] x) => (float[n,2] y) { y = Neg(x) }")
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_value = -1
    assert symbolic_dimensions(loaded(model)) == ("x[0]",)
