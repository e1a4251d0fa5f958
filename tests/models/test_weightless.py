"""The weightless form of an exported model keeps parameters and state apart."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import onnx

from onnxstep import training_step
from onnxstep.graphs.parameters import materialise, parameters, state

PATH = Path(__file__).parents[2] / "models" / "weightless.py"
EXPORTED = """g (float[8,3] x) => (float[8,3] y)
    <float[3] norm_weight = {2,2,2}, float[3] norm_bias = {3,3,3},
     float[3] mean = {4,4,4}, float[3] var = {5,5,5}> {
    y, m, v = BatchNormalization <training_mode = 1> (x, norm_weight, norm_bias, mean, var) }"""
# ONNX's text form allows no dots in names, PyTorch's names have them.
NAMES = {
    "norm_weight": "norm.weight",
    "norm_bias": "norm.bias",
    "mean": "norm.running_mean",
    "var": "norm.running_var",
}


def weightless() -> ModuleType:
    """The module next to the exporters, imported by path."""
    spec = importlib.util.spec_from_file_location("weightless", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported() -> onnx.ModelProto:
    """A batch normalization with PyTorch's tensor names, in training form."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]>\n{EXPORTED}')
    for tensor in model.graph.initializer:
        tensor.name = NAMES[tensor.name]
    (node,) = model.graph.node
    node.input[:] = [NAMES.get(name, name) for name in node.input]
    return model


def test_batch_normalization_becomes_weightless() -> None:
    """Gain one, bias zero, mean zero, variance one; inference form, trainable."""
    model = weightless().weightless(exported(), "norm", ["norm.weight", "norm.bias"])
    assert [tensor.name for tensor in parameters(model)] == ["norm.weight", "norm.bias"]
    assert [tensor.name for tensor in state(model)] == ["norm.running_mean", "norm.running_var"]
    firsts = {name: value.tolist() for name, value in materialise(model).items()}
    assert firsts == {
        "norm.weight": [1, 1, 1],
        "norm.bias": [0, 0, 0],
        "norm.running_mean": [0, 0, 0],
        "norm.running_var": [1, 1, 1],
    }
    (node,) = model.graph.node
    assert list(node.output) == ["y"]
    assert weightless().parameter_count(model) == 6
    assert training_step(model).state == ("norm.running_mean", "norm.running_var")
