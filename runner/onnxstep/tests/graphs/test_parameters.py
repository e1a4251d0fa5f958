"""Which tensors of a file are parameters, which are data, and the parameters' initial values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from exports import merged
from graph_text import model_of_text
from onnxstep.errors import CapabilityError, ModelError
from onnxstep.graphs import parameters as module
from onnxstep.graphs.initial import METADATA_KEY, Initial
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import (
    DataInput,
    Parameter,
    data_inputs,
    materialise,
    parameter_count,
    parameters,
    with_parameters,
)

MODELS = Path(__file__).parents[4] / "models"
FLOAT = onnx.TensorProto.FLOAT
WEIGHTLESS = (
    "g (float[n, 4] x, float[4] b, float[4] a) => (float[n, 4] y) { s = Mul(x, a) y = Add(s, b) }"
)
ORDINARY = """
g (float[n, 4] x, float[4] a) => (float[n, 2, 2] y)
<float[4] a = {1, 2, 3, 4}, int64[3] target = {-1, 2, 2}> {
    s = Mul(x, a)
    y = Reshape(s, target)
}"""
A = {"distribution": "uniform", "scale": 0.5, "seed": 1}
B = {"distribution": "constant", "scale": 0, "seed": 2}


def listing(text: str, listed: Any) -> onnx.ModelProto:
    """Parse ``text`` as a model, and write the list of parameters ``listed`` into its metadata."""
    model = model_of_text(text)
    onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(listed)})
    return model


def test_weightless_parameters_are_in_graph_order() -> None:
    """Parameters have the order of the graph, not that of the metadata."""
    assert parameters(listing(WEIGHTLESS, {"a": A, "b": B})) == (
        Parameter("b", (4,), FLOAT, Initial("constant", 0.0, 2)),
        Parameter("a", (4,), FLOAT, Initial("uniform", 0.5, 1)),
    )


def test_data_inputs_are_the_rest() -> None:
    """Inputs that are neither listed as parameters nor stored are data."""
    model = listing(WEIGHTLESS, {"a": A, "b": B})
    assert data_inputs(model) == (DataInput("x", ("n", 4), FLOAT),)


def test_ordinary_file_trains_its_float_initializers() -> None:
    """Stored floats are parameters, even if they are also inputs, and stored integers are not."""
    model = model_of_text(ORDINARY)
    assert parameters(model) == (Parameter("a", (4,), FLOAT, None),)
    assert data_inputs(model) == (DataInput("x", ("n", 4), FLOAT),)
    assert parameter_count(model) == 4
    (value,) = materialise(model, seed=9).values()
    np.testing.assert_array_equal(value, np.array([1, 2, 3, 4], np.float32))


def test_initializers_of_a_weightless_file_are_constants() -> None:
    """A weightless file lists its parameters in its metadata; its initializers are constants."""
    model = listing(ORDINARY.replace("float[4] a)", "float[4] b)"), {"b": B})
    assert [parameter.name for parameter in parameters(model)] == ["b"]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ({"a": A, "c": B}, "no graph input is called 'c'"),
        ({"x": A}, "'x': expected floats of a fixed shape"),
    ],
)
def test_list_must_agree_with_the_graph(listed: Any, message: str) -> None:
    """A parameter in the metadata's list must be a float input of the graph with a fixed shape."""
    with pytest.raises(ModelError, match=message):
        parameters(listing(WEIGHTLESS, listed))


def test_listed_parameter_has_no_stored_value() -> None:
    """A parameter in the metadata's list is refused if it also has an initializer."""
    with pytest.raises(ModelError, match="'a' also has an initializer"):
        parameters(listing(ORDINARY, {"a": A}))


def test_parameter_is_a_float() -> None:
    """A tensor of integers is refused in the metadata's list of parameters."""
    text = "g (int64[4] a) => (int64[4] y) { y = Neg(a) }"
    with pytest.raises(ModelError, match="got INT64"):
        parameters(listing(text, {"a": A}))


def test_input_is_a_tensor() -> None:
    """An input that is a sequence is refused."""
    model = model_of_text(ORDINARY)
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = FLOAT
    with pytest.raises(ModelError, match="input 'x': expected a tensor"):
        data_inputs(model)


@pytest.mark.parametrize("kind", ["float", "double", "float16", "bfloat16"])
def test_values_have_the_declared_type_and_shape(kind: str) -> None:
    """A parameter of any of ONNX's float types gets initial values of this type."""
    text = f"g ({kind}[2, 3] a) => ({kind}[2, 3] y) {{ y = Neg(a) }}"
    (value,) = materialise(listing(text, {"a": A})).values()
    expected = onnx.TensorProto.DataType.Value(kind.upper())
    assert onnx.helper.np_dtype_to_tensor_dtype(value.dtype) == expected
    assert value.shape == (2, 3)


def test_parameter_too_large_for_the_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If memory is exhausted, the error names the parameter and its size in bytes."""

    def exhausted(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(module, "draw", exhausted)
    with pytest.raises(CapabilityError, match="'b': expected 16 bytes"):
        materialise(listing(WEIGHTLESS, {"a": A, "b": B}))


@pytest.mark.parametrize(("name", "count"), [("mnist_mlp", 669_706), ("mnist_cnn", 1_199_882)])
def test_models_of_this_project_have_woolfs_parameter_counts(name: str, count: int) -> None:
    """Woolf's models ("Benchmarking TensorFlow on Cloud CPUs", 2017) have ``count`` parameters."""
    model = load_model(MODELS / f"{name}.onnx")
    assert parameter_count(model) == count
    assert [fed.name for fed in data_inputs(model)] == ["image"]


def test_merged_tensors_have_values_of_their_own() -> None:
    """Of equal tensors, a file may store only one; ``materialise`` returns a value for each.

    ``parameters`` lists only the tensor that the exporter stored.
    """
    model = merged()
    names = ["0.weight", "1.weight", "0.norm.weight", "0.norm.bias"]
    assert [parameter.name for parameter in parameters(model)] == names
    assert list(materialise(model)) == [*names, "1.norm.weight", "1.norm.bias"]


def test_constants_become_parameters_by_pattern() -> None:
    """A constant that matches a pattern becomes a parameter; unmatched patterns are refused."""
    text = (
        "g (float[4] x) => (float[4] y) <float[4] w = {0.12345678, 2, 3, 4}, float step = {0.7}> "
        "{ s = Mul(x, w) y = Mul(s, step) }"
    )
    model = model_of_text(text)
    assert [parameter.name for parameter in parameters(model)] == ["w"]
    chosen = with_parameters("wrt", model, ["s*", "w"])
    assert [parameter.name for parameter in parameters(chosen)] == ["w", "step"]
    with pytest.raises(ModelError, match=r"wrt 'stp\*' is unknown; choices are .*step"):
        with_parameters("wrt", model, ["stp*"])


def test_a_chosen_constant_leaves_the_weights() -> None:
    """Weights whose numbers look typed stay parameters after a constant is chosen, too."""
    model = model_of_text(
        "g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, float power = {2}> "
        "{ s = Mul(x, w) y = Pow(s, power) }"
    )
    assert [parameter.name for parameter in parameters(model)] == ["w"]
    chosen = with_parameters("--train", model, ["power"])
    assert [parameter.name for parameter in parameters(chosen)] == ["w", "power"]
