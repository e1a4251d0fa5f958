"""Gradients of normalizations through ONNX's function bodies (in float32) and in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph_text import model_of_text, run
from onnxstep import vjp_graph

Array = NDArray[Any]
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def unit_and_gradient(x: Array, g: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Normalize ``x`` over ``axes``; also return the gradient with respect to ``x``.

    ``g`` is the gradient with respect to the normalized values.
    """
    spread = x.std(axes, keepdims=True)
    unit = (x - x.mean(axes, keepdims=True)) / spread
    along = unit * (g * unit).mean(axes, keepdims=True)
    return unit, (g - g.mean(axes, keepdims=True) - along) / spread


@pytest.mark.parametrize("axes", [(0, 2), (1,)])
def test_mean_variance_normalization(axes: tuple[int, ...]) -> None:
    """The gradient of MeanVarianceNormalization equals the result of its formula in numpy."""
    model = model_of_text(
        "g (float[3,2,4] x) => (float[3,2,4] y) "
        f"{{ y = MeanVarianceNormalization <axes = [{', '.join(map(str, axes))}]> (x) }}",
        opset=18,
    )
    x, g = np.random.default_rng(0).standard_normal((2, 3, 2, 4), dtype=np.float32)
    got = run(vjp_graph(model, ["x"]), {"x": x, "y_cotangent": g})
    np.testing.assert_allclose(got["x_gradient"], unit_and_gradient(x, g, axes)[1], **CLOSE)


def test_group_normalization() -> None:
    """GroupNormalization's gradients of input, scale and bias equal those computed in numpy."""
    model = model_of_text(
        "g (float[2,6,2,2] x, float[6] s, float[6] b) => (float[2,6,2,2] y) "
        "{ y = GroupNormalization <num_groups = 3, epsilon = 0.0> (x, s, b) }"
    )
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, 2, 6, 2, 2), dtype=np.float32)
    s, b = rng.standard_normal((2, 6), dtype=np.float32)
    got = run(vjp_graph(model, ["x", "s", "b"]), {"x": x, "s": s, "b": b, "y_cotangent": g})
    scaled = g * s[:, None, None]
    unit, dx = unit_and_gradient(x.reshape(2, 3, 8), scaled.reshape(2, 3, 8), (2,))
    np.testing.assert_allclose(got["x_gradient"], dx.reshape(x.shape), **CLOSE)
    per_channel = (g * unit.reshape(x.shape)).sum((0, 2, 3))
    np.testing.assert_allclose(got["s_gradient"], per_channel, **CLOSE)
    np.testing.assert_allclose(got["b_gradient"], g.sum((0, 2, 3)), **CLOSE)


def test_layer_normalization_in_float64() -> None:
    """The gradients in float64 are exact, although the node returns its mean in float32."""
    model = model_of_text(
        "g (double[4,6] x, double[6] s) => (double[4,6] y) "
        "{ y = LayerNormalization <epsilon = 0.0> (x, s) }"
    )
    rng = np.random.default_rng(2)
    x, g = 100 + rng.standard_normal((4, 6)), rng.standard_normal((4, 6))
    s = rng.standard_normal(6)
    got = run(vjp_graph(model, ["x", "s"]), {"x": x, "s": s, "y_cotangent": g})
    unit, dx = unit_and_gradient(x, g * s, (1,))
    np.testing.assert_allclose(got["x_gradient"], dx, rtol=1e-10)
    np.testing.assert_allclose(got["s_gradient"], (g * unit).sum(0), rtol=1e-10)
