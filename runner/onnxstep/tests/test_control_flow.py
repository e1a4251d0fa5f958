"""Gradients through sequences of tensors agree with finite differences; loops are refused."""

from __future__ import annotations

import numpy as np
import pytest

from graph_text import model_of_text, run, shape_of
from onnxstep import vjp_graph
from onnxstep.errors import ModelError
from oracle.evaluators import reference
from oracle.judge import errors
from oracle.slope import slopes

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
    feeds = {v.name: rng.uniform(0.5, 1.5, shape_of(v)) for v in model.graph.input}
    measured = slopes(reference(model), feeds, ["y", "z"], seed=3, step=1e-5)
    cotangents = {f"{name}_cotangent": u for name, u in measured.cotangents.items()}
    got = run(vjp_graph(model, list(feeds)), {**feeds, **cotangents})
    for name, y in run(model, feeds).items():
        np.testing.assert_allclose(got[name], y, rtol=1e-12)
    assert list(errors(got, measured.by_input, tolerance=1e-6, floor=0)) == []


def test_a_loop_is_refused() -> None:
    """The error for a Loop tells the user to export the model with the loop unrolled."""
    body = "(int64 i, bool c, float[3] a) => (bool d, float[3] e) { d = Identity(c) e = Sin(a) }"
    model = model_of_text(
        "g (float[3] x) => (float[3] y) <int64 n = {2}> "
        f"{{ y = Loop (n, , x) <body = b {body}> }}"
    )
    with pytest.raises(ModelError, match=r"ai\.onnx::Loop .*: export the model with the loop"):
        vjp_graph(model, ["x"])
