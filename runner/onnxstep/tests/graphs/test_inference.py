"""Nodes that make onnx's shape inference loop or crash are refused before the inference."""

from __future__ import annotations

import pytest

from graph_text import model_of_text
from onnxstep import vjp_graph
from onnxstep.errors import ModelError
from onnxstep.graphs.loading import load_model_bytes

EQUATION = "......ij,j->ij"
EINSUM = f'Einsum <equation = "{EQUATION}">'
FUNCTION = '<domain: "local", opset_import: ["" : 21]>'
# Places where an Einsum can be: the text of the graph, and the functions that it calls.
PLACES = {
    "graph": (f"y = {EINSUM} (x, w)", ""),
    "branch": (
        f"y = If(c) <then_branch = t () => (float[2,3] p) {{ p = {EINSUM} (x, w) }}, "
        "else_branch = e () => (float[2,3] q) { q = Add(x, w) }>",
        "",
    ),
    "loop": (
        "s, y = Loop(n, c, x) <body = b (int64 i, bool k, float[2,3] a) => "
        f"(bool k2, float[2,3] a2) {{ k2 = Identity(k) a2 = {EINSUM} (a, w) }}>",
        "",
    ),
    "function": (
        "y = local.product(x, w)",
        f"{FUNCTION} product (a, b) => (p) {{ p = {EINSUM} (a, b) }}",
    ),
    "attribute of a function": (
        f'y = local.product <text = "{EQUATION}"> (x, w)',
        f"{FUNCTION} product <text> (a, b) => (p) "
        "{ p = Einsum <equation: string = @text> (a, b) }",
    ),
}


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("place", PLACES)
def test_two_ellipses_in_an_operand_are_refused(place: str, typed: bool) -> None:
    """An Einsum operand with two ellipses is refused in graphs, nested graphs and functions."""
    nodes, functions = PLACES[place]
    model = model_of_text(
        f"g (float[2,3] x, float[3] w) => (float[2,3] y) <bool c = {{1}}, int64 n = {{2}}> "
        f"{{ {nodes} }}",
        functions=functions,
    )
    if not typed:
        model.graph.output[0].ClearField("type")
    with pytest.raises(ModelError, match=r"\(Einsum\): expected an equation .*; correct"):
        vjp_graph(load_model_bytes(model.SerializeToString()), ["w"])


@pytest.mark.parametrize("opset", [-(2**63), 0])
def test_an_opset_that_cannot_be_is_no_operators_fault(opset: int) -> None:
    """A model of opset 0 or below is refused as invalid, without blaming an operator."""
    model = model_of_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.opset_import[0].version = opset
    with pytest.raises(ModelError, match="expected a valid ONNX model"):
        load_model_bytes(model.SerializeToString())


@pytest.mark.parametrize("equation", ["...i,...j->...ij", "i j, j", "...,...", "->", "", "Ba"])
def test_equations_of_one_ellipsis_an_operand_are_read(equation: str) -> None:
    """Einsum equations with at most one ellipsis in each operand are accepted."""
    operands = ", ".join("xw"[: equation.partition("->")[0].count(",") + 1])
    model = model_of_text(
        "g (float[2,3] x, float[3] w) => (float[r] y) "
        f'{{ y = Einsum <equation = "{equation}"> ({operands}) }}'
    )
    assert load_model_bytes(model.SerializeToString()).graph.node[0].op_type == "Einsum"


@pytest.mark.parametrize(
    ("node", "fault"),
    [
        ("GatherND <batch_dims = -2> (x, i)", "batch_dims of at least 0, got -2"),
        (f"LayerNormalization <axis = {2**63 - 1}> (x, w)", "an axis of its input, got 9223"),
        ("LayerNormalization <stash_type = 0> (x, w)", "a float type as stash_type"),
        ("Split <num_outputs = 2> (x)", "as many outputs as num_outputs, 2, got 1"),
        ("com.microsoft.MatMulNBits <K = 3> (x, w, w)", "the attributes K and N"),
    ],
)
def test_attributes_that_would_end_the_process_are_refused(node: str, fault: str) -> None:
    """If an attribute would crash onnx's shape inference, the error names node and attribute."""
    model = model_of_text(
        "g (float[2,3] x, float[3] w) => (float[a,b] y) <int64[2,1] i = {0, 1}> "
        f"{{ h = Mul(x, w) y = {node.replace('(x', '(h')} }}"
    )
    with pytest.raises(ModelError, match=rf"node 'y' \(\w+\): expected {fault}"):
        load_model_bytes(model.SerializeToString())
