"""Whether a tensor is a running statistic or a parameter depends on which nodes read it."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from graph_text import model_of_text
from onnxstep.errors import ModelError
from onnxstep.graphs.initial import METADATA_KEY, STATE_KEY, Initial
from onnxstep.graphs.parameters import (
    Parameter,
    data_inputs,
    materialise,
    parameters,
    running_statistics,
    state,
)

WEIGHTS = "<float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = {4,5,6}>"
LAYER = "y = BatchNormalization(x, s, b, m, v)"
FED = "g (float[8,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[8,3] y)"
FLOAT = onnx.TensorProto.FLOAT


def stored(body: str, outputs: str = "float[8,3] y") -> onnx.ModelProto:
    """A model whose nodes are ``body``, with a stored scale, bias, mean and variance."""
    return model_of_text(f"g (float[8,3] x) => ({outputs}) {WEIGHTS} {{ {body} }}")


def test_mean_and_variance_of_a_layer_are_state() -> None:
    """``state`` lists BatchNormalization's statistics, and ``materialise`` returns their values."""
    model = stored(LAYER)
    assert [parameter.name for parameter in parameters(model)] == ["s", "b"]
    assert state(model) == (Parameter("m", (3,), FLOAT, None), Parameter("v", (3,), FLOAT, None))
    values = materialise(model)
    assert list(values) == ["s", "b", "m", "v"]
    np.testing.assert_array_equal(values["v"], [4, 5, 6])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("c = Identity(m) d = Identity(c) y = BatchNormalization(x, s, b, d, v)", {"m", "v"}),
        ("z = Add(x, m) y = BatchNormalization(z, s, b, m, v)", {"v"}),
        ("y = BatchNormalization(x, s, v, m, v)", {"m"}),
        ("y = Add(x, m)", set()),
    ],
)
def test_a_statistic_is_read_by_nothing_else(body: str, expected: set[str]) -> None:
    """Running statistics are read only as means or variances of BatchNormalization nodes."""
    assert running_statistics(stored(body)) == expected


def test_a_statistic_that_is_an_output_is_none() -> None:
    """A mean that is also a graph output is no running statistic, because the caller reads it."""
    model = stored(LAYER, "float[8,3] y, float[3] m")
    assert running_statistics(model) == {"v"}


def test_a_statistic_inside_a_local_function_is_found() -> None:
    """The running statistics of a BatchNormalization in a local function are found."""
    model = model_of_text(
        f"g (float[8,3] x) => (float[8,3] y) {WEIGHTS} {{ y = local.layer(x, s, b, m, v) }}",
        functions='<domain: "local", opset_import: ["" : 21]> layer (x, s, b, m, v) => (y) '
        f"{{ {LAYER} }}",
    )
    assert running_statistics(model) == {"m", "v"}


def listing(parameters_listed: object, state_listed: object) -> onnx.ModelProto:
    """A model without weights; its metadata lists these parameters and running statistics."""
    model = model_of_text(f"{FED} {{ {LAYER} }}")
    lists = {METADATA_KEY: parameters_listed, STATE_KEY: state_listed}
    onnx.helper.set_model_props(model, {key: json.dumps(value) for key, value in lists.items()})
    return model


ONES = {"distribution": "constant", "scale": 1, "seed": 0}


def test_a_weightless_file_lists_its_state() -> None:
    """``state`` reads statistics and their first values from metadata of a file without weights."""
    model = listing({"s": ONES, "b": ONES}, {"m": ONES, "v": ONES})
    assert state(model)[1] == Parameter("v", (3,), FLOAT, Initial("constant", 1.0, 0))
    assert [parameter.name for parameter in parameters(model)] == ["s", "b"]
    assert [fed.name for fed in data_inputs(model)] == ["x"]
    np.testing.assert_array_equal(materialise(model)["m"], [1, 1, 1])


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ({"u": ONES}, "epochcost.state: no graph input is called 'u'"),
        ({"m": {}}, "epochcost.state: 'm': expected distribution, scale and seed"),
        ([], "epochcost.state: expected a JSON object"),
    ],
)
def test_a_wrong_list_of_state_is_named(listed: object, message: str) -> None:
    """If a file's list of running statistics is wrong, the message names the list and the fault."""
    with pytest.raises(ModelError, match=message):
        state(listing({"s": ONES}, listed))
