"""The memory of a model, against the tensors that a run must hold."""

from __future__ import annotations

from typing import Any

import onnx

from epochcost.execute.sizing import Footprint, ModelSize, size_of
from epochcost.specs.model import Model
from graph_text import model_of_text
from tiny_project import linear_model


def tiny(**changes: Any) -> Model:
    """The spec of a linear model with 16 inputs and 3 classes."""
    training = {
        "loss": "softmax_cross_entropy",
        "output": "logits",
        "target": {"classes": 3},
        "optimizer": {"name": "adam"},
        "batch_sizes": [2, 4, 8],
        "examples_per_epoch": 100,
        "epochs": 1,
    }
    document = {
        "id": "tiny",
        "name": "Tiny",
        "task": "tests",
        "example": "sixteen numbers",
        "graph": "tiny.onnx",
        "inputs": [{"name": "x"}],
        "training": training | changes,
        "inference": {"batch_sizes": [1]},
        "source": "made up",
    }
    return Model.model_validate(document)


def footprint(size: ModelSize, mode: Any, batch_size: int) -> Footprint:
    """The footprint at ``batch_size``; the test fails if there is none."""
    counted = size[mode]
    assert not isinstance(counted, str)
    return counted[batch_size]


def test_what_cannot_be_overwritten_is_held_twice() -> None:
    """On CUDA nothing is written in place, so all carried values are held twice."""
    size = size_of(tiny(), linear_model(), {"training": [4]}, "cuda")
    step = footprint(size, "training", 4)
    assert (step.in_place_bytes, step.second_set_bytes) == (0, step.carried_bytes)


def test_parts_of_a_sequence_are_counted_as_tensors() -> None:
    """Parts of a split have known sizes only if they are read at constant positions."""
    shape = "g (float[batch,16] x) => (float[batch,16] logits) "
    split = "s = SplitToSequence <axis = 1> (x, eight) "
    values = "<int64 eight = {8}, int64 one = {1}, float[8,16] w = {"
    values += ", ".join(["1.0"] * 128) + "}> "
    read = model_of_text(
        shape + values + f"{{ {split} u = SequenceAt(s, one) logits = MatMul(u, w) }}"
    )
    size = size_of(tiny(), read, {"training": [4], "inference": [4]})
    assert footprint(size, "inference", 4).weight_bytes == 4 * 8 * 16
    computed = "m = ReduceMin <keepdims = 0> (x) at = Cast <to = 7> (m) "
    anywhere = model_of_text(
        shape + values + f"{{ {split} {computed} u = SequenceAt(s, at) logits = MatMul(u, w) }}"
    )
    size = size_of(tiny(), anywhere, {"inference": [4]})
    assert isinstance(size["inference"], str)


def test_a_sequence_as_an_output_is_not_counted() -> None:
    """The size of a sequence is unknown, so that the trial stays in a plan without an estimate."""
    graph = linear_model()
    graph.graph.node.append(onnx.helper.make_node("SequenceConstruct", ["x", "x"], ["pair"]))
    kind = onnx.TensorProto.FLOAT
    graph.graph.output.append(onnx.helper.make_tensor_sequence_value_info("pair", kind, None))
    size = size_of(tiny(), graph, {"inference": [4]})
    assert size == {"inference": "value 'pair': expected a tensor to count with"}


def test_a_mode_that_cannot_be_built_is_said() -> None:
    """A model that cannot be differentiated has a size for inference and none for training."""
    stepped = model_of_text(
        "g (float[batch,16] x) => (float[batch,3] logits) <float[16,3] w = {"
        + ", ".join(["1.0"] * 48)
        + "}> { p = MatMul(x, w) logits = Sign(p) }"
    )
    size = size_of(tiny(), stepped, {"training": [4], "inference": [1]})
    assert isinstance(size["training"], str)
    assert footprint(size, "inference", 1).weight_bytes == 4 * 16 * 3


def test_weights_are_never_allocated() -> None:
    """Parameters too large for any memory are counted."""
    graph = linear_model()
    wide = 2**33
    dims = [
        (graph.graph.input[0].type.tensor_type.shape.dim[1], wide),
        (graph.graph.input[1].type.tensor_type.shape.dim[1], wide),
    ]
    for dim, extent in dims:
        dim.dim_value = extent
    onnx.checker.check_model(graph)
    size = size_of(tiny(), graph, {"training": [1]})
    assert footprint(size, "training", 1).memory_bytes("cuda") > 6 * 4 * 3 * wide


def test_folded_constants_are_bytes_of_the_session() -> None:
    """A value that a session computes from constants at its creation counts as folded."""
    graph = model_of_text(
        "g (float[batch,16] x) => (float[batch,16] y) <float[1] one = {1}, int64[1] s = {16}> "
        "{ e = Expand(one, s) a = Sin(x) y = Add(a, e) }"
    )
    size = size_of(tiny(), graph, {"inference": [2]})
    assert footprint(size, "inference", 2).folded_bytes == 16 * 4
