"""Recomputing segments of the forward pass saves memory and does not change a step's results."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

from activation_memory import peak_bytes, running_nodes
from graph_text import model_of_text, run
from onnxstep import StepOptions, TrainingStep, training_step
from onnxstep.graphs.parameters import materialise

LAYERS, WIDTH, ROWS = 16, 8, 64
RNG = np.random.default_rng(3)


def numbers(*shape: int) -> str:
    """Random numbers for a tensor of ``shape``, in the text form of an initializer."""
    return ", ".join(f"{v:.4f}" for v in RNG.standard_normal(np.prod(shape)) / WIDTH**0.5)


def chain(middle: str) -> onnx.ModelProto:
    """Equal layers: p = MatMul(h, w), then the nodes ``middle`` give m, then h = Tanh(m)."""
    weights = "".join(
        f", float[{WIDTH},{WIDTH}] w{i} = {{{numbers(WIDTH, WIDTH)}}}"
        f", float[{WIDTH}] g{i} = {{{numbers(WIDTH)}}}"
        for i in range(LAYERS)
    )
    layers = "".join(
        f" p{i} = MatMul({f'h{i - 1}' if i else 'x'}, w{i}) "
        + middle.replace("#", str(i))
        + f" h{i} = Tanh(m{i})"
        for i in range(LAYERS)
    )
    stored = (
        f"<float half = {{0.5}}, bool yes = {{1}}, float[{WIDTH}] scale = {{{numbers(WIDTH)}}}, "
        f"float[{WIDTH}] shift = {{{numbers(WIDTH)}}}, float[{WIDTH}] mean = {{{numbers(WIDTH)}}}, "
        f"float[{WIDTH}] var = {{{', '.join(['1'] * WIDTH)}}}{weights}>"
    )
    last = f"h{LAYERS - 1}"
    return model_of_text(
        f"g (float[{ROWS},{WIDTH}] x) => (float[{ROWS},{WIDTH}] y) {stored} "
        f"{{ {layers} y = Neg({last}) }}"
    )


CHAINS = {
    "elementwise": " a# = Sin(p#) m# = Exp(a#)",
    "dropout": " a# = Sigmoid(p#) m# = Dropout(a#, half)",
    "normalised": " m# = LayerNormalization(p#, g#)",
    "residual": " a# = Sin(p#) m# = Add(a#, x)",
}


def steps(model: onnx.ModelProto) -> tuple[TrainingStep, TrainingStep]:
    """The step without recomputation, and the step with recomputed segments."""
    plain, again = (
        training_step(model, StepOptions(loss="mse", optimizer="adam", seed=1, rematerialise=kind))
        for kind in ("none", "sqrt")
    )
    return plain, again


def feeds(step: TrainingStep, model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Inputs of a step: data from a fixed seed, the model's parameters, and initial states."""
    rng, initial = np.random.default_rng(5), materialise(model)
    carried = {c.input: initial.get(c.input, np.full(c.shape, c.fill)) for c in step.carried}
    values = {**carried, step.learning_rate: np.array(0.01)}
    types = {info.name: info.type.tensor_type for info in step.model.graph.input}
    return {
        name: np.asarray(
            values.get(name, rng.standard_normal([d.dim_value for d in kind.shape.dim])),
            onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type),
        )
        for name, kind in types.items()
    }


@pytest.mark.parametrize("middle", CHAINS.values(), ids=CHAINS)
def test_the_update_is_the_same_for_less_memory(middle: str) -> None:
    """Recomputing changes results by rounding only, and saves a quarter of the peak memory."""
    model = chain(middle)
    plain, again = steps(model)
    onnx.checker.check_model(again.model, full_check=True)
    expected = run(plain.model, feeds(plain, model))
    got = run(again.model, feeds(again, model))
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=2e-5, atol=1e-6, err_msg=name)
    assert peak_bytes(again.model) < 0.75 * peak_bytes(plain.model)


@pytest.mark.parametrize("opset", [11, 13])
def test_models_of_old_opsets_are_computed_again_too(opset: int) -> None:
    """Recomputing does not change updates at old opsets, whose Reshape lacks ``allowzero``."""
    layers = "".join(f" p{i} = MatMul({f'p{i - 1}' if i else 'x'}, w)" for i in range(LAYERS))
    model = model_of_text(
        f"g (float[{ROWS},{WIDTH}] x) => (float[{ROWS},{WIDTH}] y) "
        f"<float[{WIDTH},{WIDTH}] w = {{{numbers(WIDTH, WIDTH)}}}> "
        f"{{ {layers} y = Tanh(p{LAYERS - 1}) }}",
        opset=opset,
    )
    plain, again = steps(model)
    expected = run(plain.model, feeds(plain, model))
    got = run(again.model, feeds(again, model))
    np.testing.assert_allclose(got["w.next"], expected["w.next"], rtol=2e-5, atol=1e-6)
    assert len(again.model.graph.node) > len(plain.model.graph.node)


def test_the_second_computation_survives_the_session(tmp_path) -> None:
    """ONNX Runtime's optimizer does not merge recomputed nodes with the original nodes."""
    plain, again = steps(chain(CHAINS["elementwise"]))
    counts = []
    for step in (plain, again):
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        onnxruntime.InferenceSession(
            step.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        nodes = onnx.load(tmp_path / "optimised.onnx").graph.node
        counts.append(sum(node.op_type == "Sin" for node in nodes))
    assert counts[0] == LAYERS
    assert counts[1] > 1.5 * LAYERS


def test_weights_of_four_bits_become_floats_again() -> None:
    """Dequantized 4-bit weights are recomputed, which saves memory and changes no result."""
    width = 80  # constants of this size are not folded
    layers = "".join(
        f" w{i} = DequantizeLinear <axis = 0> (codes{i}, scale)"
        f" p{i} = MatMul({f'h{i - 1}' if i else 'x'}, w{i})"
        f" s{i} = Add(p{i}, b{i}) h{i} = Tanh(s{i})"
        for i in range(LAYERS)
    )
    biases = ", ".join(f"float[{width}] b{i} = {{{numbers(width)}}}" for i in range(LAYERS))
    codes = ", ".join(f"uint4[{width},{width}] codes{i}" for i in range(LAYERS))
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[{ROWS},{width}] x, {codes}) => '
        f"(float[{ROWS},{width}] h{LAYERS - 1}) <float[{width}] scale = "
        f"{{{', '.join(['0.01'] * width)}}}, {biases}> {{ {layers} }}"
    )
    for value in [*model.graph.input][1:]:
        model.graph.input.remove(value)
        drawn = RNG.integers(0, 16, width * width).tolist()
        kind = onnx.TensorProto.UINT4
        model.graph.initializer.append(
            onnx.helper.make_tensor(value.name, kind, [width, width], drawn)
        )
    plain, again = steps(model)
    assert peak_bytes(again.model) < peak_bytes(plain.model)
    fed = feeds(plain, model)
    expected, got = run(plain.model, fed), run(again.model, fed)
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)


def test_running_statistics_move_once() -> None:
    """Recomputing a BatchNormalization does not update its statistics a second time."""
    model = chain(" m# = BatchNormalization(p#, scale, shift, mean, var)")
    plain, again = steps(model)
    expected = run(plain.model, feeds(plain, model))
    got = run(again.model, feeds(again, model))
    statistics = [c.output for c in plain.carried if c.role == "state"]
    assert {"mean.next", "var.next"} <= set(statistics)
    for name in ("loss", *statistics):
        np.testing.assert_allclose(got[name], expected[name], rtol=2e-5, atol=1e-6, err_msg=name)
    assert len(running_nodes(again.model)) > len(running_nodes(plain.model))


def test_a_graph_with_nothing_to_save_stays_as_it_is() -> None:
    """Recomputation does not change the step of a one-layer model, as it would save no memory."""
    model = model_of_text(
        "g (float[4,2] x) => (float[4,2] y) <float[2,2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }"
    )
    plain, again = steps(model)
    assert again.model == plain.model
