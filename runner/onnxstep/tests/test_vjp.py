"""``vjp_graph`` returns the right names, shapes and gradients, or raises a one-line error."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from exports import merged
from graph_text import model_of_text, run, shape_of
from onnxstep import registry, vjp_graph
from onnxstep.errors import ModelError
from onnxstep.graphs.exported import separated

X = np.array([1.0, -2.0, 3.0], dtype=np.float32)
ONES = np.ones(3, dtype=np.float32)


def test_the_contract_of_names_and_shapes() -> None:
    """A float output y gets an input y_cotangent, and a chosen tensor x an output x_gradient."""
    model = model_of_text(
        "g (float[3] x, float[3] w) => (float[3] y, float[3] z) { y = Mul(x, w) z = Add(y, w) }"
    )
    backward = vjp_graph(model, ["x", "w"])
    onnx.checker.check_model(backward, full_check=True)
    inputs = {info.name: shape_of(info) for info in backward.graph.input}
    assert inputs == {"x": [3], "w": [3], "y_cotangent": [3], "z_cotangent": [3]}
    assert [info.name for info in backward.graph.output] == ["y", "z", "x_gradient", "w_gradient"]
    got = run(backward, {"x": X, "w": 2 * ONES, "y_cotangent": ONES, "z_cotangent": 10 * ONES})
    np.testing.assert_allclose(got["x_gradient"], 11 * 2 * ONES)
    np.testing.assert_allclose(got["w_gradient"], 11 * X + 10)


def test_uses_of_one_value_add_up() -> None:
    """The gradient of a value that is used several times is the sum over all uses."""
    model = model_of_text(
        "g (float[3] x) => (float[3] y) { a = Mul(x, x) b = Mul(a, x) y = Add(b, x) }"
    )
    got = run(vjp_graph(model, ["x"]), {"x": X, "y_cotangent": ONES})
    np.testing.assert_allclose(got["x_gradient"], 3 * X**2 + 1)


def test_an_output_listed_twice_has_one_cotangent() -> None:
    """A file may list an output twice, which ONNX Runtime accepts."""
    model = model_of_text("g (float[3] x) => (float[3] y, float[3] y) { y = Mul(x, x) }")
    got = run(vjp_graph(model, ["x"]), {"x": X, "y_cotangent": ONES})
    np.testing.assert_allclose(got["x_gradient"], 2 * X)


def test_what_nothing_depends_on_has_zero_gradient() -> None:
    """A tensor gets a gradient of zeros if outputs depend only on its shape."""
    model = model_of_text(
        "g (float[3] x, float[2,2] w) => (float[3] y, int64[2] s) { y = Neg(x) s = Shape(w) }"
    )
    got = run(
        vjp_graph(model, ["w"]), {"x": X, "w": np.ones((2, 2), np.float32), "y_cotangent": ONES}
    )
    np.testing.assert_array_equal(got["w_gradient"], np.zeros((2, 2)))


def test_local_functions_are_inlined() -> None:
    """A call of a local function has the gradient of the function's body."""
    model = model_of_text(
        "g (float[3] x) => (float[3] y) { y = local.square(x) }",
        functions='<domain: "local", opset_import: ["" : 21]> square (a) => (b) { b = Mul(a, a) }',
    )
    got = run(vjp_graph(model, ["x"]), {"x": X, "y_cotangent": ONES})
    np.testing.assert_allclose(got["x_gradient"], 2 * X)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("form", ["stored", "fed"])
def test_dropout_uses_the_forward_mask(form: str, training: bool) -> None:
    """Dropout's gradient follows the forward pass, whether the training mode is stored or fed."""
    inputs, stored = {
        "stored": ("float[64] x", f", bool mode = {{{int(training)}}}"),
        "fed": ("float[64] x, bool mode", ""),
    }[form]
    model = model_of_text(
        f"g ({inputs}) => (float[64] y) <float ratio = {{0.25}}{stored}> "
        "{ y = Dropout <seed = 3> (x, ratio, mode) }"
    )
    x = np.ones(64, np.float32)
    feeds = {"x": x, "y_cotangent": x} | ({"mode": np.array(training)} if form == "fed" else {})
    got = run(vjp_graph(model, ["x"]), feeds)
    np.testing.assert_allclose(got["x_gradient"], got["y"], rtol=1e-6)
    assert (np.count_nonzero(got["y"]) < 64) == training


def test_an_operator_without_a_rule_is_named_with_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error for a missing rule names the node, the path from x to the node, and a docs page."""
    monkeypatch.delitem(registry._ANSWERS, ("", "Erf", 13), raising=False)
    model = model_of_text("g (float[3] x) => (float[3] y) { a = Neg(x) b = Erf(a) y = Neg(b) }")
    model.graph.node[1].name = "the_erf"
    with pytest.raises(ModelError) as caught:
        vjp_graph(model, ["x"])
    message = str(caught.value)
    assert "'the_erf'" in message
    assert "ai.onnx::Erf (version 13)" in message
    assert "x -> a -> b" in message
    assert "docs/adding-an-operator.md" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("wrt", "demand"), [("nothing", "wrt 'nothing' is unknown"), ("n", "expected a float")]
)
def test_an_impossible_wrt_is_refused(wrt: str, demand: str) -> None:
    """Unknown names and integer tensors in ``wrt`` give one-line errors."""
    model = model_of_text(
        "g (float[3] x, int64[3] n) => (float[3] y, int64[3] m) { y = Neg(x) m = Neg(n) }"
    )
    with pytest.raises(ModelError, match=demand):
        vjp_graph(model, [wrt])


def test_patterns_choose_what_is_differentiated() -> None:
    """Each float input or initializer that matches a pattern gets one gradient."""
    model = model_of_text(
        "g (float[3] x, int64[3] xs) => (float[3] y, int64[3] m) <float[3] xw = {1,2,3}> "
        "{ y = Mul(x, xw) m = Neg(xs) }"
    )
    outputs = [value.name for value in vjp_graph(model, ["xw", "x*"]).graph.output]
    assert outputs == ["y", "m", "xw_gradient", "x_gradient"]


def test_merged_tensors_are_differentiated_as_written() -> None:
    """If an exporter merged the equal biases of two norms, the stored bias has one gradient.

    The gradient is the sum of the gradients that the two biases would have separately.
    """
    got = vjp_graph(merged(), ["0.norm.bias"])
    restored = vjp_graph(separated(merged()), ["0.norm.bias", "1.norm.bias"])
    feeds = {name: np.ones((8, 4), np.float32) for name in ("x", "y_cotangent")}
    parts = run(restored, feeds)
    whole = parts["0.norm.bias_gradient"] + parts["1.norm.bias_gradient"]
    np.testing.assert_allclose(run(got, feeds)["0.norm.bias_gradient"], whole, rtol=1e-5)


def test_a_name_that_is_taken_is_refused() -> None:
    """A model with a value that is already called y_cotangent is refused."""
    model = model_of_text(
        "g (float[3] x) => (float[3] y) { y_cotangent = Neg(x) y = Neg(y_cotangent) }"
    )
    with pytest.raises(ModelError, match="already taken"):
        vjp_graph(model, ["x"])


def test_the_given_model_is_left_as_it_was() -> None:
    """The model that is passed in does not change."""
    model = model_of_text(
        "g (float[1,1,4,4] x) => (float[1,1,2,2] y) "
        "{ y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }"
    )
    before = model.SerializeToString(deterministic=True)
    vjp_graph(model, ["x"])
    assert model.SerializeToString(deterministic=True) == before


def test_a_transposed_matrix_times_a_vector() -> None:
    """The gradient graph returns the right Aᵀ v and the right gradients.

    ONNX Runtime computes the original model, a product of a transposed matrix and a vector,
    wrongly.
    """
    model = model_of_text(
        "g (float[3,2] x, float[3] v) => (float[2] y) "
        "{ t = Transpose <perm = [1, 0]> (x) y = MatMul(t, v) }"
    )
    x, v, u = (np.array(n, np.float32) for n in ([[1, 2], [3, 4], [5, 7]], [1, -1, 2], [2, 3]))
    got = run(vjp_graph(model, ["x", "v"]), {"x": x, "v": v, "y_cotangent": u})
    np.testing.assert_array_equal(got["y"], x.T @ v)
    np.testing.assert_array_equal(got["x_gradient"], np.outer(v, u))
    np.testing.assert_array_equal(got["v_gradient"], x @ u)


@pytest.mark.parametrize(
    ("body", "demand"),
    [
        ("y = ai.onnx.ml.Scaler (x)", "ai.onnx.ml::Scaler.*loss before them"),
        ("y = SequenceConstruct (x)", "ai.onnx::SequenceConstruct.*with plain tensors"),
        ("y = NonZero (x)", "ai.onnx::NonZero: .* depends on data"),
        ("y = other.Norm (x)", "other::Norm: .* onnx has no such operator"),
        (
            "d = ReduceSum <keepdims = 0> (x) c = Cast <to = 9> (d) y = If (c) "
            "<then_branch = t () => (float[2, 2] p) { p = Identity (x) }, "
            "else_branch = e () => (float q) { q = Identity (d) }>",
            "ai.onnx::If: .* a constant of the file",
        ),
        (
            "d = ReduceSum <keepdims = 0> (x) c = Cast <to = 9> (d) z, y = Loop (, c, x) <body = b "
            "(int64 i, bool on, float[2, 2] v) => (bool more, float[2, 2] w, float[2, 2] o) "
            "{ more = Identity (on) w = Mul (v, v) o = Identity (w) }>",
            "ai.onnx::Loop: .* EmbeddingBag",
        ),
    ],
)
def test_what_hides_its_shape_is_refused_with_operator_and_reason(body: str, demand: str) -> None:
    """If the shape of output y is unknown, the error names y's operator, and a reason or remedy."""
    head = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3, "other" : 1]>'
    model = onnx.parser.parse_model(f"{head} g (float[2, 2] x) => (y) {{ {body} }}")
    with pytest.raises(ModelError, match=demand):
        vjp_graph(model, ["x"])


def test_a_file_that_the_runtime_optimized_is_refused_in_one_line() -> None:
    """The error for a fused BiasGelu names the operator, and asks for the original export."""
    model = model_of_text(
        "g (float[2, 2] x, float[2] b) => (float[2, 2] y) { y = com.microsoft.BiasGelu (x, b) }"
    )
    with pytest.raises(ModelError, match=r"com\.microsoft::BiasGelu .* use the original export"):
        vjp_graph(model, ["x"])


def test_what_a_branch_takes_from_outside_counts() -> None:
    """A parameter that the branches of an If read counts as an input of the If.

    The gradient of the parameter is refused, because an If whose condition is not constant cannot
    be differentiated.
    """
    model = model_of_text(
        "g (float[3] x, float[3] w, bool c) => (float[3] y) { a = If(c) "
        "<then_branch = t () => (float[3] p) { p = Mul(x, w) }, "
        "else_branch = e () => (float[3] q) { q = Add(x, w) }> y = Add(a, w) }"
    )
    with pytest.raises(ModelError, match=r"ai.onnx::If .* w -> a -> loss"):
        vjp_graph(model, ["w"])


def test_an_axis_that_is_no_list_is_an_axis() -> None:
    """The axes of a reduction may be a scalar instead of a vector."""
    model = model_of_text(
        "g (float[2,3] x) => (float[2,1] y) <int64 axis = {1}> { y = ReduceMean(x, axis) }"
    )
    backward = vjp_graph(model, ["x"])
    (gradient,) = (info for info in backward.graph.output if info.name == "x_gradient")
    assert shape_of(gradient) == [2, 3]


def test_recurrent_weights_without_axes_are_refused() -> None:
    """Scalar weights of a GRU, which onnx's shape inference accepts, are refused."""
    model = model_of_text(
        "g (float[4,2,3] x, float[1,6,3] w) => (float[4,1,2,2] y) <float r = {1}>"
        "{ y = GRU <hidden_size = 2, linear_before_reset = 1> (x, w, r) }"
    )
    with pytest.raises(ModelError, match="expected X, W and R of rank 3"):
        vjp_graph(model, ["x"])


@pytest.mark.parametrize(
    "call",
    [
        'Pad <mode = "wrap"> (x, ends)',
        "AveragePool <kernel_shape = [3], strides = [1]> (longer)",
        "AveragePool <kernel_shape = [100000], strides = [1]> (longer)",
        "LSTM <hidden_size = 1> (longer, w, r)",
    ],
)
def test_derivatives_that_outgrow_the_model_are_refused(call: str) -> None:
    """A gradient that needs a huge constant or over 4096 recurrent steps is refused."""
    model = model_of_text(
        "g (float[1,1,1] x) => (float s) <int64[6] ends = {0, 0, 0, 0, 0, 99999999}, "
        "int64[3] sizes = {SIZES}, float[1,4,1] w = {1,2,3,4}, float[1,4,1] r = {1,2,3,4}> "
        f"{{ longer = Expand(x, sizes) y = {call} s = ReduceSum <keepdims = 0> (y) }}".replace(
            "SIZES", "99999999,1,1" if "LSTM" in call else "1,1,99999999"
        )
    )
    with pytest.raises(ModelError, match=r"expected (constants of|at most 4096 steps)"):
        vjp_graph(model, ["x"])


def test_places_in_a_detector_are_no_weights() -> None:
    """A weight's gradient is right in a model that also computes pixel positions from a shape."""
    model = model_of_text(
        "g (float[batch,1,height] x, float[1,1,3] w) => (float[batch,1,rows] y) "
        "<float zero = {0}, float one = {1}, float half = {0.5}, float[3] twice = {1,1,2}, "
        "int64 two = {2}> { c = Conv <kernel_shape = [3], strides = [2], pads = [1,1]> (x, w) "
        "u = Resize(c, , twice) s = Shape(u) n = Gather(s, two) f = Cast <to = 1> (n) "
        "r = Range(zero, f, one) a = Add(r, half) y = Mul(u, a) }"
    )
    half = "floor(height/2 - 1/2) + 1"
    for name, rows in {"c": half, "u": f"2*({half})"}.items():
        info = onnx.helper.make_tensor_value_info(name, 1, ["batch", 1, rows])
        model.graph.value_info.append(info)
    model.graph.output[0].type.tensor_type.shape.dim[2].dim_param = f"2*({half})"
    built = vjp_graph(model, ["w"], {"batch": 2, "height": 9})
    x, w = np.ones((2, 1, 9), np.float32), np.ones((1, 1, 3), np.float32)
    got = run(built, {"x": x, "w": w, "y_cotangent": np.ones((2, 1, 10), np.float32)})
    places = np.arange(10).reshape(5, 2).sum(axis=1) + 1
    within = [places[1:].sum(), places.sum(), places[:-1].sum()]
    np.testing.assert_allclose(got["w_gradient"].ravel(), 2 * np.array(within))


@pytest.mark.parametrize("flag", [2, -1])
def test_any_number_but_zero_turns_a_factor(flag: int) -> None:
    """Gemm's transB transposes for every value except zero, as in ONNX Runtime."""
    model = model_of_text(
        "g (float[2,3] x, float[4,3] w) => (float[2,4] y) { y = Gemm <transB = 1> (x, w) }"
    )
    plain = vjp_graph(model, ["x", "w"])
    model.graph.node[0].attribute[0].i = flag
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 3), "w": (4, 3), "y_cotangent": (2, 4)}
    feeds = {name: rng.random(shape).astype(np.float32) for name, shape in shapes.items()}
    got = run(vjp_graph(model, ["x", "w"]), feeds)
    for name, expected in run(plain, feeds).items():
        np.testing.assert_array_equal(got[name], expected)


def test_a_node_that_its_operator_does_not_allow_is_refused() -> None:
    """A Pad with an undefined mode, which onnx does not check, gives a one-line error."""
    model = model_of_text(
        "g (float[1,2,3] x) => (float[a,b,c] y) <int64[6] ends = {0, 0, 0, 0, 0, 1}> "
        '{ y = Pad <mode = "outwards"> (x, ends) }'
    )
    message = "^node 'y' .* mode b'outwards', which do not fit"
    with pytest.raises(ModelError, match=message) as caught:
        vjp_graph(model, ["x"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", ["MaxPool <kernel_shape = [2]>", "Dropout"])
def test_an_output_left_out_by_an_empty_name_is_left_out(call: str) -> None:
    """An empty output name at the end means the same as a shorter list of outputs."""
    model = model_of_text(f"g (float[1,1,3] x) => (float[1,1,n] y) {{ y = {call} (x) }}")
    plain = vjp_graph(model, ["x"])
    model.graph.node[0].output.append("")
    assert len(vjp_graph(model, ["x"]).graph.node) == len(plain.graph.node)


def test_more_operands_than_a_shape_has_sizes() -> None:
    """A Concat of a hundred operands has a gradient for each operand."""
    names = [f"w{index}" for index in range(100)]
    model = model_of_text(
        "g (float[100,2] x) => (float[100,2] y) "
        f"{{ c = Concat <axis = 0> ({', '.join(names)}) y = Mul(x, c) }}",
        weights=dict.fromkeys(names, np.ones((1, 2), np.float32)),
    )
    x = np.arange(200, dtype=np.float32).reshape(100, 2)
    got = run(vjp_graph(model, names), {"x": x, "y_cotangent": np.ones_like(x)})
    rows = np.concatenate([got[f"{name}_gradient"] for name in names])
    np.testing.assert_array_equal(rows, x)


def test_an_output_that_no_node_makes_is_refused() -> None:
    """The error names an output that no node computes."""
    model = model_of_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].output[0] = "z"
    with pytest.raises(ModelError, match="output 'y'"):
        vjp_graph(model, ["x"])
