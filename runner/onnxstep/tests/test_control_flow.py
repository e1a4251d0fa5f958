"""Gradients through unrolled loops and sequences agree with finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from graph_text import model_of_text, run
from onnxstep import vjp_graph
from onnxstep.errors import ModelError
from onnxstep.graphs.control_flow import MAX_UNROLLED_NODES

STEP = 1e-6
BY_NUMBER = """
g (double[4,3] x, double[3] s) => (double[3] y, double[n,3] z)
<int64 three = {3}, bool go = {1}, double[3] w = {1, -2, 0.5}> {
    y, z = Loop (three, go, s) <body = b (int64 i, bool c, double[3] a)
        => (bool d, double[3] e, double[3] o) <double[3] k = {2, 3, 5}> {
        d = Identity (c) r = Gather (x, i) t = Mul (a, k) u = Mul (t, r) e = Add (u, w)
        o = Mul (r, e)
    }>
}
"""
BY_CONDITION = """
g (double[2] x) => (double[2] y) <int64 four = {4}> {
    y = Loop ("", "", x) <body = b (int64 i, bool c, double[2] a) => (bool d, double[2] e) {
        d = Less (i, four) f = Cast <to = 11> (i) g = Add (a, f) e = Mul (a, g)
    }>
}
"""
NESTED = """
g (double[2] x) => (double[2] y, double[n,m,2] z) <int64 n = {2}, bool go = {1}> {
    y, z = Loop (n, go, x) <body = b (int64 i, bool c, double[2] a)
        => (bool d, double[2] e, double[2,2] o) {
        d = Identity (c)
        e, o = Loop (n, c, a) <body = inner (int64 j, bool p, double[2] q)
            => (bool s, double[2] r, double[2] v) { s = Identity (p) r = Mul (q, x) v = Sin (r) }>
    }>
}
"""
SCANNED = """
g (double[2,3] x, double[2] s) => (double[2] y, double[2,3] z) {
    y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        scan_output_axes = [-1], scan_output_directions = [1], body = b (double[2] a, double[2] r)
        => (double[2] e, double[2] o) { e = Mul (a, r) o = Add (e, r) }> (s, x)
}
"""
SEQUENCES = """
g (double[2,3] x, double[3] s) => (double[3] y, double[2,3] z)
<int64 one = {1}, int64 first = {0}, int64 last = {-1}> {
    p = SplitToSequence <axis = 0, keepdims = 0> (x) q = SequenceInsert (p, s, one)
    r = SequenceErase (q, first) z = ConcatFromSequence <axis = 0, new_axis = 1> (r)
    n = SequenceLength (q) f = Cast <to = 11> (n) a = SequenceAt (q, last) b = Mul (a, f)
    e = SequenceConstruct (b, s) y = SequenceAt (e, first)
}
"""


@pytest.mark.parametrize("text", [BY_NUMBER, BY_CONDITION, NESTED, SCANNED, SEQUENCES])
def test_what_is_written_out_has_the_slopes_of_finite_differences(text: str) -> None:
    """Loops by count, by condition, nested and scanned, and sequences, have right gradients."""
    model = model_of_text(text.replace('""', ""))
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


def test_what_nobody_reads_of_a_loop_is_left_out() -> None:
    """A loop output that is omitted or not needed leads to no nodes."""
    model = model_of_text(
        "g (float[3] x) => (float[3] y) <int64 n = {2}, bool go = {1}> "
        "{ y, z = Loop (n, go, x) <body = b (int64 i, bool c, float[3] a) "
        "=> (bool d, float[3] e, float[3] o) { d = Identity (c) e = Sin (a) o = Neg (a) }> }"
    )
    model.graph.node[0].output[1] = ""
    operators = {node.op_type for node in vjp_graph(model, ["x"]).graph.node}
    assert "Sin" in operators
    assert not operators & {"Loop", "Neg", "Concat"}


@pytest.mark.parametrize("trips", ["", "<int64 n = {1000000}>"])
def test_a_loop_that_is_not_written_out_is_refused(trips: str) -> None:
    """The error for a number of iterations that is fed or too large names the limit."""
    fed = "" if trips else ", int64 n"
    body = "(int64 i, bool c, float[3] a) => (bool d, float[3] e) { d = Identity(c) e = Sin(a) }"
    model = model_of_text(
        f"g (float[3] x{fed}) => (float[3] y) {trips} {{ y = Loop (n, , x) <body = b {body}> }}"
    )
    demand = rf"node 'y': operator ai.onnx::Loop .*at most {MAX_UNROLLED_NODES} nodes"
    with pytest.raises(ModelError, match=demand):
        vjp_graph(model, ["x"])
