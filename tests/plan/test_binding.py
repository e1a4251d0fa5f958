"""Dimensions get sizes and carried states get outputs, or one line says what to write."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from pydantic import ValidationError

from epochcost.errors import ModelError
from epochcost.plan.binding import bind_model, carried_state, graph_misfits
from epochcost.specs.model import Input, Model
from exports import merged
from graph_text import model_of_text
from onnxstep.graphs.binding import symbolic_dimensions
from onnxstep.graphs.exported import taken_apart

RECURRENT = """g (int64[batch, sequence] x, float[batch, 4] h)
    => (float[batch, sequence, 4] y, float[batch, 4] h_after, float[4] other)
    <float[9, 4] w = {@}, int64[1] axis = {1}>
    { e = Gather(w, x) s = ReduceSum <keepdims = 0> (e, axis) t = Add(s, h) h_after = Tanh(t)
      u = Unsqueeze(h, axis) y = Add(e, u) other = ReduceSum <keepdims = 0> (w, zero) }"""


def recurrent() -> onnx.ModelProto:
    """A graph from tokens and a state to scores and the next state."""
    text = RECURRENT.replace("@", ",".join(["0.1"] * 36)).replace(
        "int64[1] axis = {1}", "int64[1] axis = {1}, int64[1] zero = {0}"
    )
    return model_of_text(text)


def spec(**changes: Any) -> Model:
    """A spec of the recurrent graph, with these changes."""
    document = {
        "id": "net",
        "name": "Net",
        "task": "words",
        "example": "a sentence",
        "graph": "net.onnx",
        "inputs": [Input(name="x", vocabulary=9)],
        "dimensions": {"sequence": 6},
        "source": "a paper",
    }
    return Model.model_validate(document | changes)


def test_the_batch_and_the_specs_dimensions_are_bound() -> None:
    """Every symbolic dimension gets its size from the trial or the spec."""
    graph = bind_model(recurrent(), spec(), 3)
    assert symbolic_dimensions(graph) == ()
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.graph.input
    }
    assert shapes == {"x": [3, 6], "h": [3, 4]}


def test_a_lone_dimension_is_the_batch_whatever_its_name() -> None:
    """A single symbolic dimension is the batch, whatever its name, such as N."""
    model = model_of_text("g (float[N, 4] x) => (float[N, 4] y) { y = Neg(x) }")
    graph = bind_model(model, spec(dimensions={}), 5)
    assert graph.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 5


@pytest.mark.parametrize(
    ("dimensions", "words"),
    [
        (
            {},
            r"^model net: expected a size for the dimension 'sequence' of net\.onnx, found none: "
            r"write it in the spec's table \[dimensions\], such as sequence = 128$",
        ),
        (
            {"sequense": 6},
            r"model net: \[dimensions\]: dimension 'sequense' is unknown; choices are batch, "
            "sequence; did you mean 'sequence'",
        ),
    ],
)
def test_a_dimension_without_a_size_is_one_line(dimensions: dict[str, int], words: str) -> None:
    """The line names the dimension, the table and the key."""
    with pytest.raises(ModelError, match=words):
        bind_model(recurrent(), spec(dimensions=dimensions), 3)


def test_a_size_that_does_not_fit_is_one_line() -> None:
    """A size that contradicts the graph is refused with the given sizes."""
    model = model_of_text(
        "g (float[batch, n] x) => (float[batch, 2] y) <float[4, 2] w = {1,2,3,4,5,6,7,8}> "
        "{ y = MatMul(x, w) }"
    )
    with pytest.raises(ModelError, match=r"^models/net\.onnx with n = 5, batch = 3: .*") as caught:
        bind_model(model, spec(dimensions={"n": 5}), 3)
    assert "\n" not in str(caught.value)


def test_carried_state_is_what_the_spec_says() -> None:
    """A carried state has an input and an output of equal shape and type."""
    model = spec(carried=[{"input": "h", "output": "h_after"}])
    assert carried_state(bind_model(recurrent(), model, 3), model) == model.carried


@pytest.mark.parametrize(
    ("carried", "words"),
    [
        ([("g", "h_after")], r"model net: \[\[carried\]\]: input 'g' is unknown; choices are x, h"),
        ([("h", "h_afte")], r"output 'h_afte' is unknown; .* did you mean 'h_after'\?"),
        ([("h", "other")], r"equal shapes and types of 'h' and 'other', got \[3, 4\] and \[4\]"),
        ([("x", "h_after")], r"equal shapes and types of 'x' and 'h_after'"),
    ],
)
def test_state_that_cannot_be_carried_is_one_line(
    carried: list[tuple[str, str]], words: str
) -> None:
    """Input and output of a carried state must exist, with equal shapes and types."""
    pairs = [{"input": before, "output": after} for before, after in carried]
    model = spec(carried=pairs)
    with pytest.raises(ModelError, match=words):
        carried_state(bind_model(recurrent(), model, 3), model)


def test_an_output_is_carried_once() -> None:
    """Two carried states cannot have the same output."""
    pairs = [{"input": name, "output": "h_after"} for name in ("h", "x")]
    with pytest.raises(ValidationError, match=r"once, got .h_after. twice"):
        spec(carried=pairs)


def test_merged_tensors_are_taken_apart() -> None:
    """Tensors that an exporter merged are separate in the bound graph."""
    graph = bind_model(merged(), spec(dimensions={}), 8)
    assert taken_apart(graph) == ["1.norm.weight", "1.norm.bias"]


def test_a_graph_without_inputs_and_outputs_is_said() -> None:
    """The messages have "(none)" instead of an empty list."""
    said = [str(misfit) for misfit in graph_misfits(onnx.ModelProto(), spec(dimensions={}))]
    assert said == [
        "graph: should have an output, has none",
        "inputs[0].name: should name the graph's inputs (none), got 'x'",
    ]


def test_an_input_without_an_entry_is_said() -> None:
    """Each of the graph's inputs but those for carried state needs an entry in the spec."""
    messages = [str(misfit) for misfit in graph_misfits(recurrent(), spec())]
    assert messages == ["inputs: should name the graph's inputs h, x, has no 'h'"]
    model = spec(carried=[{"input": "h", "output": "h_after"}])
    assert not list(graph_misfits(recurrent(), model))
