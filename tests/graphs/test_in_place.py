"""A step may overwrite a value if no node reads it after the node that writes."""

from __future__ import annotations

import pytest

from epochcost.graphs.in_place import in_place_updates
from graph_text import model_of_text

HEAD = "step (float[4,4] w, float[4,4] g, float[4,4] x) => (float[4,4] after, float[4,4] y)"
CASES = {
    "the update alone": ("after = Sub(w, g)  y = Add(x, g)", True),
    "a copy that shrinks": ("k = Mul(w, x)  after = Sub(k, g)  y = Add(x, g)", True),
    "a reader before the update": (
        "p = MatMul(x, w)  q = Add(p, g)  after = Sub(w, q)  y = Relu(q)",
        True,
    ),
    "a reader beside the update": ("after = Sub(w, g)  y = MatMul(x, w)", False),
    "a copy that a product takes in": (
        "t = Transpose(w)  u = ReduceSum(t)  after = Sub(w, u)  y = MatMul(x, t)",
        False,
    ),
    "a factor that a product takes in": (
        "two = Constant<value_float = 2.0>()  t = Mul(w, two)  u = ReduceSum(t)"
        "  after = Sub(w, u)  y = MatMul(x, t)",
        False,
    ),
    "a bias that its activation takes in": (
        "a = Add(x, w)  r = Relu(a)  s = ReduceSum(r)  after = Sub(w, s)  y = MatMul(r, g)",
        True,
    ),
    "a bias whose activation is read late": (
        "a = Add(x, w)  r = Gelu(a)  after = Sub(w, g)  y = MatMul(r, g)",
        False,
    ),
    "another shape of it": (
        "n = Constant<value_ints = [4, 4]>()  v = Reshape(w, n)  v2 = Identity(v)"
        "  after = Sub(v2, g)  y = Add(x, g)",
        False,
    ),
    "a sum with a product": ("p = MatMul(x, g)  after = Add(w, p)  y = Add(x, g)", False),
    "no arithmetic": ("after = MatMul(w, g)  y = Add(x, g)", False),
    "it is an output": ("after = Sub(w, g)  y = Identity(w)", False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_may_be_overwritten(case: str) -> None:
    """Only a value without later readers may be overwritten, whatever ONNX Runtime fuses."""
    nodes, is_free = CASES[case]
    model = model_of_text(f"{HEAD} {{ {nodes} }}")
    assert in_place_updates(model, {"w": "after"}) == ({"w"} if is_free else set())


def test_readers_in_subgraphs_count() -> None:
    """A branch that reads the value counts as a reader."""
    head = HEAD.replace("(", "(bool c, ", 1)
    text = (
        f"{head} {{ y = If(c) <then_branch = yes () => (float[4,4] p) {{ p = MatMul(x, w) }},"
        " else_branch = no () => (float[4,4] q) { q = Identity(x) }>  after = Sub(w, g) }"
    )
    assert not in_place_updates(model_of_text(text), {"w": "after"})
