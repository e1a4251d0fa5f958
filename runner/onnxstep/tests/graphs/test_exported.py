"""Tests of `exported`, which reads how PyTorch's exporter merged or computed stored tensors."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from exports import ONES, WEIGHTS, optimised, traced
from exports import merged as merged_file
from graph_text import run
from onnxstep.graphs.exported import Folded, folded, layer, merged, separated, taken_apart

X = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)


def test_merged_tensors_come_apart_and_compute_the_same() -> None:
    """If the exporter replaced a tensor by an equal one, ``separated`` stores the tensor again.

    In the exported file, an Identity node computes the replaced tensor from the equal one. The
    results of the model stay equal.
    """
    model = merged_file()
    restored = separated(model)
    assert merged(model) == {"1.norm.weight": "0.norm.weight", "1.norm.bias": "0.norm.bias"}
    onnx.checker.check_model(restored, full_check=True)
    np.testing.assert_array_equal(run(restored, {"x": X})["y"], run(model, {"x": X})["y"])
    assert separated(restored) is restored
    assert taken_apart(restored) == ["1.norm.weight", "1.norm.bias"]


READERS = {
    "copied layers": ("MatMul", "MatMul", WEIGHTS[0], True),
    "a table and the head that is tied to it": ("Add", "MatMul", WEIGHTS[0], False),
    "fresh tensors of different layers": ("Add", "Mul", ONES, True),
}


@pytest.mark.parametrize(("first", "second", "value", "is_restored"), READERS.values(), ids=READERS)
def test_only_what_was_merged_comes_apart(
    first: str, second: str, value: np.ndarray, is_restored: bool
) -> None:
    """``merged`` lists an Identity's output, unless the tensor seems shared on purpose."""
    nodes = [
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node(first, ["x", "a"], ["h"]),
        helper.make_node(second, ["h", "b"], ["y"]),
    ]
    assert merged(traced(nodes, {"a": value})) == ({"b": "a"} if is_restored else {})


@pytest.mark.parametrize("change", ["another producer", "a node of the program", "an output"])
def test_other_identities_stay(change: str) -> None:
    """An Identity that writes a graph output, or that PyTorch's exporter did not insert, stays."""
    model = merged_file()
    if change == "another producer":
        model.producer_name = "tf2onnx"
    elif change == "an output":
        model.graph.output.extend(
            helper.make_tensor_value_info(f"1.norm.{name}", onnx.TensorProto.FLOAT, [4])
            for name in ("weight", "bias")
        )
    else:
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [
                    "/1" + name[1:] if name.startswith("1.norm") else name for name in names
                ]
    assert separated(model) is model


def test_sources_of_computed_tensors() -> None:
    """``folded`` lists the parameters, buffers and operators that each tensor was computed from."""
    origins = {
        "val_3": ["qkv.weight"],
        "embedding_1": ["wpe.weight", "arange", "slice_2", "val_1"],
        "cos": ["rotary.inv_freq", "mul_1", "val_2"],
    }
    assert folded(optimised(origins, dict.fromkeys(origins, ONES))) == {
        "val_3": Folded(("qkv.weight",), (), frozenset()),
        "embedding_1": Folded(("wpe.weight",), (), frozenset({"embedding", "arange", "slice"})),
        "cos": Folded((), ("rotary.inv_freq",), frozenset({"cos", "mul"})),
    }


def test_the_layer_of_a_node() -> None:
    """``layer`` gives the module path that PyTorch wrote, or else a name unique to the node."""
    node = helper.make_node("Add", ["a", "b"], ["c"], name="/encoder/layer.0/Add")
    assert layer(node) == "encoder.layer.0"
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'head', 'add']")
    assert layer(node) == "head"
    assert layer(helper.make_node("Add", ["a", "b"], ["c"])) == "c"
