"""Steps with unrolled LSTM layers give the results of steps with ONNX Runtime's LSTM operator."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from graph_text import run
from onnxstep import StepOptions, training_step

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 5, 2


def layer(
    direction: str = "forward", more: str = "", *, inputs: str = "b,,h0,c0", output: str = "all"
) -> onnx.ModelProto:
    """A model that scales x, runs an LSTM and computes a loss.

    ``more`` has further attributes of the LSTM, ``inputs`` its optional inputs. ``output`` says
    which outputs the loss reads.
    """
    directions = 2 if direction == "bidirectional" else 1
    shapes = {
        "s": (INPUTS,),
        "w": (directions, 4 * HIDDEN, INPUTS),
        "r": (directions, 4 * HIDDEN, HIDDEN),
        "b": (directions, 8 * HIDDEN),
        "h0": (directions, BATCH, HIDDEN),
        "c0": (directions, BATCH, HIDDEN),
        "p": (directions, 3 * HIDDEN),
        "lengths": (BATCH,),
    }
    used = ["s", "w", "r", *(name for name in inputs.split(",") if name)]
    loss = {
        "all": "sum = ReduceSum <keepdims = 0> (h, three) both = Add(last_h, last_c) "
        "wide = Unsqueeze(both, one) y = Add(h, wide)",
        "last": "y = Add(last_h, last_c)",
        "every": "y = Mul(h, h)",
    }[output]
    names = {"all": "h, last_h, last_c", "last": ", last_h, last_c", "every": "h"}[output]
    text = (
        f"g (float[{STEPS},{BATCH},{INPUTS}] x) => (float y) "
        "<int64[1] one = {0}, int64[3] three = {0, 1, 2}> { a = Mul(x, s) "
        f'{names} = LSTM <hidden_size = {HIDDEN}, direction = "{direction}"{more}> '
        f"(a, w, r, {inputs}) {loss} }}"
    )
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    rng = np.random.default_rng(2)
    for name in used:
        value = rng.standard_normal(shapes[name]).astype(np.float32)
        array = np.array([4, 2, 3], np.int32) if name == "lengths" else value
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def stepped(model: onnx.ModelProto, provider: str | None) -> tuple[dict, set[str]]:
    """Outputs of a training step with inputs from a fixed seed, and the step's operators."""
    step = training_step(model, StepOptions(loss="mse", provider=provider))
    rng = np.random.default_rng(7)
    feeds = {
        info.name: rng.standard_normal(
            [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for info in sorted(step.model.graph.input, key=lambda info: info.name)
    }
    return run(step.model, feeds), {node.op_type for node in step.model.graph.node}


def agree(model: onnx.ModelProto) -> set[str]:
    """Assert that the steps for CPU and for any provider agree; return the operators for CPU."""
    expected, _ = stepped(model, None)
    got, operators = stepped(model, "cpu")
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    return operators


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("inputs", ["b,,h0,c0", ",,h0", "b"])
@pytest.mark.parametrize("output", ["all", "last", "every"])
def test_a_layer_written_out_is_the_layer(direction: str, inputs: str, output: str) -> None:
    """A CPU step has no LSTM node, and its outputs equal those of a step with an LSTM node."""
    assert "LSTM" not in agree(layer(direction, inputs=inputs, output=output))


@pytest.mark.parametrize(
    ("more", "inputs"),
    [
        (', activations = ["Sigmoid", "Relu", "Tanh"]', "b"),
        ("", "b,lengths"),
    ],
    ids=["other activations", "lengths"],
)
def test_a_rare_form_stays_the_operator(more: str, inputs: str) -> None:
    """A CPU step keeps an LSTM node that has sequence lengths or unusual activations."""
    assert "LSTM" in agree(layer(more=more, inputs=inputs, output="every"))
