"""``training_step`` returns a step with the right names and updates, or raises the right error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from graph_text import model_of_text, run, session
from onnxstep import (
    Momentum,
    StepOptions,
    TrainingStep,
    evaluation_graph,
    first_values,
    training_step,
)
from onnxstep.errors import ModelError
from onnxstep.graphs.parameters import materialise
from onnxstep.optimizers import OPTIMIZERS
from reference_steps import Stepping

LINEAR = """g (float[batch,4] x) => (float[batch,3] logits)
    <float[4,3] w = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,0.1,0.2}, float[3] b = {0,0,0}>
    { h = MatMul(x, w) logits = Add(h, b) }"""
RNG = np.random.default_rng(5)
X = RNG.standard_normal((8, 4)).astype(np.float32)
TARGET = RNG.integers(0, 3, 8)


def feeds(step: TrainingStep, model: onnx.ModelProto, rate: float) -> dict:
    """Inputs of the first run of a step: data, target, learning rate, parameters and state."""
    rates = {step.learning_rate: np.array(rate, np.float32)}
    return {"x": X, step.target: TARGET, **rates, **first_values(step, model)}


def softmax(z: np.ndarray) -> np.ndarray:
    """Softmax of each row."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_one_sgd_step_is_the_formula() -> None:
    """Loss and updated parameters equal those of softmax regression computed in numpy."""
    model = model_of_text(LINEAR)
    step = training_step(model, StepOptions(dimensions={"batch": 8}))
    onnx.checker.check_model(step.model, full_check=True)
    values = feeds(step, model, 0.5)
    got = run(step.model, values)
    p = softmax(X @ values["w"] + values["b"])
    error = (p - np.eye(3)[TARGET]) / 8
    np.testing.assert_allclose(got["loss"], -np.log(p[range(8), TARGET]).mean(), rtol=1e-5)
    assert got["loss"].shape == ()
    np.testing.assert_allclose(got["w.next"], values["w"] - 0.5 * X.T @ error, rtol=1e-5)
    np.testing.assert_allclose(
        got["b.next"], values["b"] - 0.5 * error.sum(0), rtol=1e-5, atol=1e-7
    )


def test_a_trained_exponent_is_no_constant() -> None:
    """The gradient by the base follows the exponent, which earlier steps have changed."""
    text = "g (float[1] x) => (float[1] y) { v = Pow(w, p) y = Mul(v, x) }"
    weights = {"w": np.array([3], np.float32), "p": np.array([1], np.float32)}
    model = model_of_text(text, weights=weights)
    step = training_step(model, StepOptions(loss="own_output", wrt=["w", "p"]))
    stepping = Stepping(step, model, rate=1.0, evaluator=session(step.model))
    stepping.carried["p"] = np.array([2], np.float32)
    assert stepping({"x": np.ones(1, np.float32)}) == 9
    assert stepping.carried["w"] == 3 - 2 * 3


def test_the_names_of_a_step() -> None:
    """A step names its data inputs, parameters, state, and the values for the next step."""
    step = training_step(
        model_of_text(LINEAR), StepOptions(optimizer=Momentum(0.9), dimensions={"batch": 8})
    )
    assert step.inputs == ("x",)
    assert step.parameters == ("w", "b")
    assert step.state == ("w.momentum", "b.momentum")
    assert step.frozen == ()
    names = [info.name for info in step.model.graph.input]
    assert names == ["x", "target", "learning_rate", "w", "w.momentum", "b", "b.momentum"]
    assert [c.output for c in step.carried] == [info.name for info in step.model.graph.output][1:]
    assert not {t.name for t in step.model.graph.initializer} & {"w", "b"}


def test_every_node_of_a_step_has_a_name_of_its_own() -> None:
    """Node names are unique, as ONNX Runtime 1.20 requires, even if the model repeats a name."""
    model = model_of_text(LINEAR)
    for node, name in zip(model.graph.node, ("dense", "dense"), strict=True):
        node.name = name
    named = [
        node.name
        for node in training_step(model, StepOptions(dimensions={"batch": 8})).model.graph.node
    ]
    assert len(set(named)) == len(named)
    assert {"dense", "denselogits"} <= set(named)
    assert all(named)


def test_wrt_trains_what_it_matches_alone() -> None:
    """Only parameters that ``wrt`` matches are trained, and all other parameters are frozen.

    If ``wrt`` matches a number that is a constant by default, the number is trained, too.
    """
    model = model_of_text(
        "g (float[8,4] x) => (float[8,3] logits) "
        "<float[4,3] w1 = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,0.1,0.2}, float[3] b = {0,0,0}, "
        "float w_scale = {0.7}> { h = MatMul(x, w1) s = Mul(h, w_scale) logits = Add(s, b) }"
    )
    step = training_step(model, StepOptions(wrt=["w*"]))
    assert step.parameters == ("w1", "w_scale")
    assert training_step(model, StepOptions(wrt=["*"], freeze=["w*"])).parameters == ("b",)
    values = feeds(step, model, 0.1)
    assert values["w_scale"] == np.float32(0.7)
    assert run(step.model, values)["w_scale.next"] != values["w_scale"]
    evaluation = evaluation_graph(model, wrt=["w*"])
    assert {"w1", "b", "w_scale"} <= {value.name for value in evaluation.graph.input}


def test_a_model_may_call_its_own_loss_loss() -> None:
    """A model whose loss is its own output ``loss`` can be trained and evaluated.

    The training step and the evaluation graph return the loss as ``loss``.
    """
    model = model_of_text(
        "g (float[2,4] x) => (float loss) <float[4] w = {0.12345678, 2, 3, 4}> "
        "{ p = Mul(x, w) loss = ReduceSum <keepdims = 0> (p) }"
    )
    step = training_step(model, StepOptions(loss="own_output"))
    weights = first_values(step, model)
    got = run(step.model, {"x": X[:2], "learning_rate": np.array(1, np.float32), **weights})
    np.testing.assert_allclose(got["w.next"], weights["w"] - X[:2].sum(axis=0), rtol=1e-5)
    graph = evaluation_graph(model, loss="own_output")
    assert run(graph, {"x": X[:2], **weights}) == {"loss": got["loss"]}


def test_dropout_is_put_into_training_mode() -> None:
    """Dropout draws a new mask in each run of a step and is inactive in evaluation."""
    model = model_of_text(
        "g (float[batch,4] x) => (float[batch,3] logits) "
        "<float[4,3] w = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,0.1,0.2}, float r = {0.5}> "
        "{ d = Dropout(x, r) logits = MatMul(d, w) }"
    )
    step = training_step(model, StepOptions(dimensions={"batch": 8}, freeze=["r"]))
    values = feeds(step, model, 0.1)
    opened = session(step.model)
    losses = {float(opened.run(["loss"], values)[0]) for _ in range(4)}
    assert len(losses) == 4
    exact = evaluation_graph(model, dimensions={"batch": 8})
    weights = materialise(model)
    data = {"x": X, "target": TARGET, **weights}
    fixed = {float(run(exact, data)["loss"]) for _ in range(2)}
    assert len(fixed) == 1


def test_a_seed_repeats_the_masks() -> None:
    """Two sessions of a step with a seed drop the same elements."""
    model = model_of_text(
        "g (float[8,4] x) => (float[8,3] logits) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}> "
        "{ d = Dropout(x) logits = MatMul(d, w) }"
    )
    step = training_step(model, StepOptions(seed=11))
    values = feeds(step, model, 0.1)
    assert run(step.model, values)["loss"] == run(step.model, values)["loss"]


@pytest.mark.parametrize(
    ("arguments", "demand"),
    [
        ({"loss": "softmax_cross_entrop"}, "did you mean 'softmax_cross_entropy'"),
        ({"optimizer": "adagradient"}, "optimizer 'adagradient' is unknown"),
        ({"output": "logit"}, "did you mean 'logits'"),
        ({"freeze": ["v"]}, "freeze 'v' is unknown"),
        ({"wrt": ["w*t"]}, r"wrt 'w\*t' is unknown; choices are w, b"),
        ({"no_weight_decay": ["*.bias"]}, r"no_weight_decay '\*\.bias' is unknown; choices are"),
        ({"freeze": ["w", "b"]}, "no trainable parameter affects"),
        ({"dimensions": {}}, "batch"),
        ({"clip_norm": -1.0}, "clip_norm: expected a positive number"),
        ({"micro_batches": 0}, "micro_batches: expected 1 or more"),
        ({"seed": -1}, "seed: expected an integer from 0"),
        ({"seed": 1.5}, "seed: expected an integer from 0"),
        ({"provider": "gpu"}, "provider 'gpu' is unknown; choices are cpu, cuda"),
        ({"precision": "float16"}, "precision 'float16' is unknown; choices are fp32, fp16"),
    ],
)
def test_impossible_requests_are_refused(arguments: dict, demand: str) -> None:
    """The error for a wrong argument says what is wrong, and suggests valid values if it can."""
    with pytest.raises(ModelError, match=demand):
        training_step(
            model_of_text(LINEAR), StepOptions(**{"dimensions": {"batch": 8}, **arguments})
        )


def test_a_model_with_two_outputs_needs_a_name() -> None:
    """A model with two float outputs is refused unless ``output`` names an output."""
    model = model_of_text(
        "g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Neg(x) z = Exp(x) }"
    )
    with pytest.raises(ModelError, match="2 float outputs: y, z"):
        training_step(model)


def test_a_model_without_a_float_output_is_refused() -> None:
    """A model that returns only class indices cannot be trained, and the error says so."""
    model = model_of_text("g (float[2,3] x) => (int64[1,3] y) { y = ArgMax(x) }")
    with pytest.raises(ModelError, match="no float output"):
        training_step(model)


def test_a_loss_of_an_output_of_integers_is_refused() -> None:
    """If ``output`` names an integer output, the error lists the model's float outputs."""
    model = model_of_text(
        "g (float[2,3] x) => (float[2,3] y, int64[1,3] i) { y = Neg(x) i = ArgMax(x) }"
    )
    with pytest.raises(ModelError, match="output 'i' is unknown; choices are y"):
        training_step(model, StepOptions(output="i"))


def test_a_weight_before_a_rounding_has_no_gradient() -> None:
    """If all parameters act through Round only, the error names the reason."""
    model = model_of_text(
        "g (float[2,3] x) => (float[2,3] y) <float[3] w = {0.12345678, 2, 3}> "
        "{ h = Mul(x, w) y = Round(h) }"
    )
    with pytest.raises(ModelError, match="rounding, comparisons and integers"):
        training_step(model, StepOptions(loss="mse"))


def test_a_dynamically_quantized_model_is_refused() -> None:
    """A model that quantizes its activations at run time is refused.

    The parameter b is added before the rounding, which has no gradient. So b could get a gradient
    only by the quantization scale d.
    """
    model = model_of_text(
        "g (float[2,2] x) => (float[2,2] y) "
        "<float[2] b = {0.12345678, 2}, int8[2,2] w = {1, 2, 3, 4}, float s = {0.12345678}> "
        "{ h = Add(x, b) q, d, z = DynamicQuantizeLinear(h) i = MatMulInteger(q, w, z) "
        "f = Cast <to = 1> (i) t = Mul(d, s) y = Mul(f, t) }"
    )
    with pytest.raises(ModelError, match="8 bits; train the float model"):
        training_step(model, StepOptions(loss="mse"))


def test_gradients_are_clipped_by_their_global_norm() -> None:
    """A small ``clip_norm`` bounds the norm of all gradients, and a large one changes nothing."""
    model = model_of_text(LINEAR)
    free = training_step(model, StepOptions(dimensions={"batch": 8}))
    step = training_step(model, StepOptions(dimensions={"batch": 8}, clip_norm=0.01))
    values = feeds(step, model, 1.0)
    moved = {name: values[name] - run(step.model, values)[f"{name}.next"] for name in ("w", "b")}
    length = np.sqrt(sum((delta**2).sum() for delta in moved.values()))
    np.testing.assert_allclose(length, 0.01, rtol=1e-3)
    loose = training_step(model, StepOptions(dimensions={"batch": 8}, clip_norm=1e6))
    unclipped, bounded = (run(s.model, values)["w.next"] for s in (free, loose))
    np.testing.assert_allclose(bounded, unclipped, rtol=1e-6)


def test_micro_batches_add_up_to_the_whole_batch() -> None:
    """Two micro-batches update the parameters like the whole batch, and reset the gradient sums."""
    model = model_of_text(LINEAR)
    whole = training_step(model, StepOptions(optimizer=Momentum(), dimensions={"batch": 8}))
    half = training_step(
        model, StepOptions(optimizer=Momentum(), dimensions={"batch": 4}, micro_batches=2)
    )
    expected = run(whole.model, feeds(whole, model, 0.5))
    values = feeds(half, model, 0.5)
    assert half.accumulation is not None
    names = {info.name for info in half.accumulation.model.graph.input}
    first = {**values, "x": X[:4], "target": TARGET[:4]}
    sums = run(half.accumulation.model, {k: v for k, v in first.items() if k in names})
    values |= {c.input: sums[c.output] for c in half.accumulation.carried}
    got = run(half.model, {**values, "x": X[4:], "target": TARGET[4:]})
    for name in ("w.next", "b.next", "w.momentum.next"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-6)
    assert not got["w.gradient_sum.next"].any()


def test_a_provider_allows_forms_that_only_it_runs() -> None:
    """A CPU step uses MaxUnpool; a portable step does not, because CUDA lacks MaxUnpool.

    A portable step must run on all providers. Both steps compute the same update.
    """
    model = model_of_text(
        "g (float[2,1,6,6] x) => (float[2,9] y) <int64[2] s = {2, 9}, float[1,1,1,1] w = {0.5}> "
        "{ c = Conv(x, w) p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c) "
        "y = Reshape(p, s) }"
    )
    portable, special = training_step(model), training_step(model, StepOptions(provider="cpu"))
    operators = [{node.op_type for node in step.model.graph.node} for step in (portable, special)]
    assert ["MaxUnpool" in used for used in operators] == [False, True]
    x = RNG.standard_normal((2, 1, 6, 6)).astype(np.float32)
    values = {**feeds(portable, model, 0.1), "x": x, "target": np.array([3, 5])}
    expected, got = (run(step.model, values)["w.next"] for step in (portable, special))
    np.testing.assert_allclose(got, expected, rtol=1e-6)


RECURRENT = """g (float[8,4] x, float[8,3] h) => (float[8,3] logits, float[8,3] next)
    <float[4,3] w = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,0.1,0.2}>
    { a = MatMul(x, w) s = Add(a, h) next = Tanh(s) logits = Identity(next) }"""


def test_recurrent_state_is_carried_to_the_next_step() -> None:
    """With ``carry``, an input is state, not data, and the step returns the state's next value."""
    model = model_of_text(RECURRENT)
    step = training_step(model, StepOptions(output="logits", carry={"h": "next"}))
    assert step.inputs == ("x",)
    assert step.state == ("h",)
    values = feeds(step, model, 0.1)
    got = run(step.model, values)
    np.testing.assert_allclose(got["next"], np.tanh(X @ values["w"]), rtol=1e-5)
    again = run(step.model, values | {c.input: got[c.output] for c in step.carried})
    np.testing.assert_allclose(
        again["next"], np.tanh(X @ got["w.next"] + got["next"]), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("carry", "demand"),
    [
        ({"g": "next"}, "carried input 'g' is unknown"),
        ({"h": "nxt"}, "did you mean 'next'"),
        ({"x": "next"}, "expected equal shapes"),
    ],
)
def test_state_that_cannot_be_carried_is_refused(carry: dict[str, str], demand: str) -> None:
    """``carry``, which maps inputs to outputs, is refused for unknown names and unequal shapes."""
    with pytest.raises(ModelError, match=demand):
        training_step(model_of_text(RECURRENT), StepOptions(output="logits", carry=carry))


def deep() -> onnx.ModelProto:
    """A model with a body of two layers and a head."""
    shapes = {"body_a": (8, 16), "body_b": (16, 16), "head_w": (16, 3)}
    return model_of_text(
        "g (float[4,8] x) => (float[4,3] logits) { a = MatMul(x, body_a) b = Tanh(a) "
        "c = MatMul(b, body_b) d = Tanh(c) logits = MatMul(d, head_w) }",
        weights={
            name: RNG.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()
        },
    )


def test_a_frozen_body_takes_no_backward_nodes() -> None:
    """Parameters frozen by a pattern have no gradient, state or backward nodes.

    Only four matrix products remain: three in the forward pass and one for the head's gradient.
    """
    model = deep()
    step = training_step(model, StepOptions(optimizer="adam", freeze=["body_*"]))
    assert step.parameters == ("head_w",)
    assert not [name for name in step.state if name.startswith("body")]
    products = [n for n in step.model.graph.node if n.op_type in ("MatMul", "Gemm", "FusedMatMul")]
    assert len(products) == 4
    whole = training_step(model, StepOptions(optimizer="adam"))
    assert len(step.model.graph.node) < len(whole.model.graph.node) / 2


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "rmsprop"])
def test_weight_decay_spares_what_is_named(optimizer: str) -> None:
    """Parameters in ``no_weight_decay`` are updated without decay, all others with decay."""
    model = deep()
    rule = replace(OPTIMIZERS[optimizer], weight_decay=0.3)
    plain = replace(OPTIMIZERS[optimizer], weight_decay=0.0)
    steps = [
        training_step(model, StepOptions(optimizer=rule, no_weight_decay=["body_*"])),
        training_step(model, StepOptions(optimizer=rule)),
        training_step(model, StepOptions(optimizer=plain)),
    ]
    values = {"x": RNG.standard_normal((4, 8)).astype("f4"), "target": np.array([0, 1, 2, 0])}
    spared, decayed, free = (
        run(step.model, {**feeds(step, model, 0.1), **values}) for step in steps
    )
    np.testing.assert_array_equal(spared["body_a.next"], free["body_a.next"])
    np.testing.assert_array_equal(spared["head_w.next"], decayed["head_w.next"])
    assert not np.array_equal(decayed["body_a.next"], free["body_a.next"])


def test_the_order_of_the_nodes_is_the_same_in_every_process() -> None:
    """Nodes follow the order of the parameters, not the order of a hash table."""
    names = [f"w{index}" for index in range(12)]
    stored = ", ".join(f"float[3] {name} = {{0.1, 0.2, 0.3}}" for name in names)
    first = " ".join(f"a{i} = Add({f'a{i - 1}' if i else 'x'}, {n})" for i, n in enumerate(names))
    second = " ".join(
        f"b{i} = Mul({f'b{i - 1}' if i else 'a11'}, {n})" for i, n in enumerate(names)
    )
    model = model_of_text(
        f"g (float[2,3] x) => (float[2,3] y) <{stored}> {{ {first} {second} y = Identity(b11) }}"
    )
    nodes = training_step(model, StepOptions(optimizer="sgd")).model.graph.node
    updates = [node for node in nodes if node.output[0].endswith(".next")]
    assert [node.input[0] for node in updates] == names
    made = {name: place for place, node in enumerate(nodes) for name in node.output}
    gradients = {node.output[0]: node.input[0] for node in nodes if node.op_type == "Mul"}
    places = [made[gradients[update.input[1]]] for update in updates]
    assert places == sorted(places)
