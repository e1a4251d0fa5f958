"""Gradients through sequences agree with finite differences; loops are refused."""

from __future__ import annotations

import numpy as np
import pytest

from graph_text import model_of_text, run
from onnxstep import vjp_graph
from onnxstep.errors import ModelError

STEP = 1e-6
SEQUENCES = """
g (double[2,3] x, double[3] s) => (double[3] y, double[2,3] z)
<int64 first = {0}, int64 last = {-1}> {
    p = SplitToSequence <axis = 0, keepdims = 0> (x) a = SequenceAt (p, last)
    q = SequenceConstruct (a, s) z = ConcatFromSequence <axis = 0, new_axis = 1> (q)
    b = Mul (a, s) e = SequenceConstruct (b, s) y = SequenceAt (e, first)
}
"""


def test_sequences_have_the_slopes_of_finite_differences() -> None:
    """Gradients through nodes that make, read and join sequences agree with finite differences."""
    model = model_of_text(SEQUENCES)
    rng = np.random.default_rng(3)
    sources = [value.name for value in model.graph.input]
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input]
    feeds = {n: rng.uniform(0.5, 1.5, s) for n, s in zip(sources, shapes, strict=True)}
    outputs = run(model, feeds)
    cotangents = {name: rng.standard_normal(y.shape) for name, y in outputs.items()}
    fed = {**feeds, **{f"{name}_cotangent": u for name, u in cotangents.items()}}
    got = run(vjp_graph(model, sources), fed)
    for name, y in outputs.items():
        np.testing.assert_allclose(got[name], y, rtol=1e-12)
    for name, x in feeds.items():
        v = rng.standard_normal(x.shape)
        ends = [run(model, feeds | {name: x + step * v}) for step in (STEP, -STEP)]
        slope = sum(np.sum(u * (ends[0][n] - ends[1][n])) for n, u in cotangents.items())
        projected = np.sum(v * got[f"{name}_gradient"])
        np.testing.assert_allclose(projected, slope / (2 * STEP), rtol=1e-6, err_msg=name)


def test_a_loop_is_refused() -> None:
    """The error for a Loop tells the user to export the model with the loop unrolled."""
    body = "(int64 i, bool c, float[3] a) => (bool d, float[3] e) { d = Identity(c) e = Sin(a) }"
    model = model_of_text(
        "g (float[3] x) => (float[3] y) <int64 n = {2}> "
        f"{{ y = Loop (n, , x) <body = b {body}> }}"
    )
    with pytest.raises(ModelError, match=r"ai\.onnx::Loop .*: export the model with the loop"):
        vjp_graph(model, ["x"])
