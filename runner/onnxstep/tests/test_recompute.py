"""Recomputing segments of the forward pass saves memory and does not change a step's results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from activation_memory import peak_bytes, running_nodes
from graph_text import Array, model_of_text, optimized_operators, random_inputs, run
from onnxstep import StepOptions, TrainingStep, first_values, training_step

LAYERS, WIDTH, ROWS = 16, 8, 64
RNG = np.random.default_rng(3)


def numbers(*shape: int) -> Array:
    """Random float32 numbers for a tensor of ``shape``."""
    return RNG.standard_normal(shape, np.float32) / np.float32(WIDTH**0.5)


def chain(middle: str) -> onnx.ModelProto:
    """Equal layers: p = MatMul(h, w), then the nodes ``middle`` give m, then h = Tanh(m)."""
    layers = "".join(
        f" p{i} = MatMul({f'h{i - 1}' if i else 'x'}, w{i}) "
        + middle.replace("#", str(i))
        + f" h{i} = Tanh(m{i})"
        for i in range(LAYERS)
    )
    return model_of_text(
        f"g (float[{ROWS},{WIDTH}] x) => (float[{ROWS},{WIDTH}] y) "
        f"{{ {layers} y = Neg(h{LAYERS - 1}) }}",
        weights={
            "half": np.array(0.5, np.float32),
            **{name: numbers(WIDTH) for name in ("scale", "shift", "mean")},
            "var": np.ones(WIDTH, np.float32),
            **{f"w{i}": numbers(WIDTH, WIDTH) for i in range(LAYERS)},
            **{f"g{i}": numbers(WIDTH) for i in range(LAYERS)},
        },
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
    rates = {step.learning_rate: np.array(0.01, np.float32)}
    return {**random_inputs(step.model), **first_values(step, model), **rates}


def equal_steps(
    model: onnx.ModelProto, outputs: Sequence[str] = ()
) -> tuple[TrainingStep, TrainingStep]:
    """Assert that steps without and with recomputation give equal ``outputs``; return both steps.

    By default, all outputs are compared.
    """
    plain, again = steps(model)
    expected, got = (run(step.model, feeds(step, model)) for step in (plain, again))
    for name in outputs or expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=2e-5, atol=1e-6, err_msg=name)
    return plain, again


@pytest.mark.parametrize("middle", CHAINS.values(), ids=CHAINS)
def test_the_update_is_the_same_for_less_memory(middle: str) -> None:
    """Recomputing changes results by rounding only, and saves a quarter of the peak memory."""
    plain, again = equal_steps(chain(middle))
    onnx.checker.check_model(again.model, full_check=True)
    assert peak_bytes(again.model) < 0.75 * peak_bytes(plain.model)


@pytest.mark.parametrize("opset", [11, 13])
def test_models_of_old_opsets_are_computed_again_too(opset: int) -> None:
    """Recomputing does not change updates at old opsets, whose Reshape lacks ``allowzero``."""
    layers = "".join(f" p{i} = MatMul({f'p{i - 1}' if i else 'x'}, w)" for i in range(LAYERS))
    model = model_of_text(
        f"g (float[{ROWS},{WIDTH}] x) => (float[{ROWS},{WIDTH}] y) "
        f"{{ {layers} y = Tanh(p{LAYERS - 1}) }}",
        opset=opset,
        weights={"w": numbers(WIDTH, WIDTH)},
    )
    plain, again = equal_steps(model)
    assert len(again.model.graph.node) > len(plain.model.graph.node)


def test_the_second_computation_survives_the_session(tmp_path: Path) -> None:
    """ONNX Runtime's optimizer does not merge recomputed nodes with the original nodes."""
    plain, again = steps(chain(CHAINS["elementwise"]))
    assert optimized_operators(plain.model, tmp_path).count("Sin") == LAYERS
    assert optimized_operators(again.model, tmp_path).count("Sin") > 1.5 * LAYERS


def test_weights_of_four_bits_become_floats_again() -> None:
    """Dequantized 4-bit weights are recomputed, which saves memory and changes no result."""
    width = 80  # constants of this size are not folded
    layers = "".join(
        f" w{i} = DequantizeLinear <axis = 0> (codes{i}, scale)"
        f" p{i} = MatMul({f'h{i - 1}' if i else 'x'}, w{i})"
        f" s{i} = Add(p{i}, b{i}) h{i} = Tanh(s{i})"
        for i in range(LAYERS)
    )
    four_bits = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.UINT4)
    codes = RNG.integers(0, 16, (LAYERS, width, width)).astype(four_bits)
    model = model_of_text(
        f"g (float[{ROWS},{width}] x) => (float[{ROWS},{width}] h{LAYERS - 1}) {{ {layers} }}",
        weights={
            "scale": np.full(width, 0.01, np.float32),
            **{f"codes{i}": matrix for i, matrix in enumerate(codes)},
            **{f"b{i}": numbers(width) for i in range(LAYERS)},
        },
    )
    plain, again = equal_steps(model)
    assert peak_bytes(again.model) < peak_bytes(plain.model)


def test_running_statistics_move_once() -> None:
    """Recomputing a BatchNormalization does not update its statistics a second time."""
    model = chain(" m# = BatchNormalization(p#, scale, shift, mean, var)")
    plain, again = equal_steps(model, ("loss", "mean.next", "var.next"))
    assert len(running_nodes(again.model)) > len(running_nodes(plain.model))


def test_a_graph_with_nothing_to_save_stays_as_it_is() -> None:
    """Recomputation does not change the step of a one-layer model, as it would save no memory."""
    model = model_of_text(
        "g (float[4,2] x) => (float[4,2] y) <float[2,2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }"
    )
    plain, again = steps(model)
    assert again.model == plain.model
