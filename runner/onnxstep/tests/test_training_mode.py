"""In training, BatchNormalization uses batch statistics and updates running statistics.

benchmarks/batch_normalization_against_pytorch.py wrote PyTorch's reference numbers, in float64.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from graph_text import Array, model_of_text, run, session
from onnxstep import (
    StepOptions,
    TrainingStep,
    evaluation_graph,
    first_values,
    training_step,
)
from onnxstep.errors import ModelError
from onnxstep.graphs.parameters import materialise, parameters, state
from onnxstep.passes.recompute import Rematerialisation
from provider_steps import assert_alike, portable_and_special
from reference_steps import Stepping

FAULTS = Path(__file__).parent / "faults"
GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "golden" / "batch_normalization.json").read_text("utf-8")
)
SHAPES = {
    "conv_bias": (3,),
    "conv_weight": (3, 2, 3, 3),
    "dense1_bias": (5,),
    "dense1_weight": (5, 27),
    "dense2_bias": (3,),
    "dense2_weight": (3, 5),
    **{
        f"norm{index}_{name}": (channels,)
        for index, channels in ((1, 3), (2, 5))
        for name in ("bias", "running_mean", "running_var", "weight")
    },
}
RUNNING = ("norm1_running_mean", "norm1_running_var", "norm2_running_mean", "norm2_running_var")
NETWORK = """g (TYPE[6,2,5,5] x) => (TYPE[6,3] y) {
    c = Conv(x, conv_weight, conv_bias)
    n = BatchNormalization(c, norm1_weight, norm1_bias, norm1_running_mean, norm1_running_var)
    r = Relu(n)
    f = Flatten(r)
    d = Gemm<transB = 1>(f, dense1_weight, dense1_bias)
    m = BatchNormalization<epsilon = 0.001, momentum = 0.7>
        (d, norm2_weight, norm2_bias, norm2_running_mean, norm2_running_var)
    s = Relu(m)
    y = Gemm<transB = 1>(s, dense2_weight, dense2_bias)
}"""
TRAINING_NETWORK = (
    NETWORK.replace("<epsilon", "<training_mode = 1, epsilon")
    .replace("BatchNormalization(", "BatchNormalization<training_mode = 1>(")
    .replace("    n =", "    n, mean1, var1 =")
    .replace("    m =", "    m, mean2, var2 =")
)


def drawn() -> tuple[dict[str, Array], Array, Array]:
    """Initial tensors, data and labels, drawn as in the script that wrote the reference numbers."""
    rng = np.random.default_rng(0)
    values = {name: rng.uniform(0.1, 0.6, shape) for name, shape in SHAPES.items()}
    return values, rng.standard_normal((6, 2, 5, 5)), rng.integers(0, 3, 6)


def network(dtype: type = np.float32, opset: int = 18, text: str = NETWORK) -> onnx.ModelProto:
    """The model ``text`` in ``dtype``, with the weights that gave the reference numbers."""
    kind = {np.float32: "float", np.float64: "double"}[dtype]
    weights = {name: value.astype(dtype) for name, value in drawn()[0].items()}
    return model_of_text(text.replace("TYPE", kind), opset, weights=weights)


def batch(dtype: type = np.float32) -> dict[str, Array]:
    """The data and labels from which the reference numbers were computed, by input name."""
    _, x, target = drawn()
    return {"x": x.astype(dtype), "target": target}


def trained(
    step: TrainingStep,
    model: onnx.ModelProto,
    data: Mapping[str, Array],
    steps: int = len(GOLDEN["losses"]),
    rate: float = GOLDEN["rate"],
    evaluator: ReferenceEvaluator | None = None,
) -> tuple[list[float], dict[str, Array]]:
    """Run a step ``steps`` times on ``data``; return the losses and the final carried tensors.

    ``evaluator`` runs the step's graph; the default is ONNX Runtime.
    """
    stepping = Stepping(step, model, rate, evaluator or session(step.model))
    return [stepping(data) for _ in range(steps)], stepping.carried


def test_twenty_steps_in_float64_are_pytorchs() -> None:
    """Losses and statistics in float64 equal PyTorch's, although the learning rate is float32."""
    model = network(np.float64)
    step = training_step(model)
    evaluator = ReferenceEvaluator(step.model)
    losses, after = trained(step, model, batch(np.float64), evaluator=evaluator)
    np.testing.assert_allclose(losses, GOLDEN["losses"], rtol=1e-6)
    for name in RUNNING:
        np.testing.assert_allclose(after[name], GOLDEN["running"][name], rtol=1e-6)


@pytest.mark.parametrize("opset", [13, 14, 18])
def test_twenty_steps_on_the_runtime_are_pytorchs(opset: int) -> None:
    """Float32 losses of training and evaluation equal PyTorch's for three operator versions."""
    model = network(opset=opset)
    step = training_step(model)
    losses, after = trained(step, model, batch())
    np.testing.assert_allclose(losses, GOLDEN["losses"], rtol=1e-4)
    for name in RUNNING:
        np.testing.assert_allclose(after[name], GOLDEN["running"][name], rtol=1e-3)
    graph = evaluation_graph(model)
    names = {value.name for value in graph.graph.input}
    weights = {name: value for name, value in after.items() if name in names}
    evaluated = run(graph, {**batch(), **weights})
    np.testing.assert_allclose(evaluated["loss"], GOLDEN["evaluated"], rtol=1e-4)


def test_the_form_that_the_exporter_wrote_does_not_matter() -> None:
    """Files with BatchNormalization in training or inference form give equal losses."""
    results = []
    for model in (network(), network(text=TRAINING_NETWORK)):
        losses, _ = trained(training_step(model), model, batch())
        evaluated = run(evaluation_graph(model), {**batch(), **materialise(model)})
        results.append([*losses, float(evaluated["loss"])])
    assert results[0] == results[1]


def test_statistics_among_the_outputs_go_with_the_training_form() -> None:
    """An updated running mean that is a model output is left out of the evaluation graph.

    A training step carries this mean as state, like all running statistics.
    """
    text = TRAINING_NETWORK.replace("(TYPE[6,3] y)", "(TYPE[6,3] y, TYPE[3] mean1)")
    model = network(text=text)
    plain = [info.name for info in evaluation_graph(network()).graph.output]
    assert [info.name for info in evaluation_graph(model, output="y").graph.output] == plain
    step = training_step(model, StepOptions(output="y", precision="bf16"))
    assert set(step.state) == set(RUNNING)


def test_running_statistics_are_state_and_not_parameters() -> None:
    """Running statistics start with the model's values and have no gradient."""
    model = network()
    step = training_step(model, StepOptions(optimizer="momentum"))
    assert tuple(tensor.name for tensor in state(model)) == tuple(sorted(RUNNING))
    assert not {tensor.name for tensor in parameters(model)} & set(RUNNING)
    assert not set(step.parameters) & set(RUNNING)
    first = {c.input: c.initial for c in step.carried if c.role == "state"}
    assert {name for name, initial in first.items() if initial == "model"} == set(RUNNING)
    assert first["conv_weight.momentum"] == 0.0
    assert "BatchNormalization" not in [node.op_type for node in step.model.graph.node]


def test_a_frozen_statistic_keeps_the_written_form() -> None:
    """If a running mean is frozen, its BatchNormalization layer stays in inference form.

    The layers whose statistics are not frozen get the training form.
    """
    step = training_step(network(), StepOptions(freeze=["norm1_running_mean"]))
    assert step.state == ("norm2_running_mean", "norm2_running_var")
    remaining = [n for n in step.model.graph.node if n.op_type == "BatchNormalization"]
    assert [node.input[3] for node in remaining] == ["norm1_running_mean"]


def test_micro_batches_move_the_running_statistics_each() -> None:
    """Every micro-batch updates the running statistics, as in PyTorch."""
    step = training_step(network(), StepOptions(micro_batches=2))
    assert step.accumulation is not None
    assert set(RUNNING) <= {c.input for c in step.accumulation.carried}
    assert set(RUNNING) <= set(step.state)


SHARED = """g (float[4,3] x) => (float[4,3] y)
    <float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = {1,1,1}> {
    h = BatchNormalization(x, s, b, m, v) y = BatchNormalization(h, s, b, m, v) }"""


def test_a_layer_used_twice_moves_its_statistics_twice() -> None:
    """The second use of a layer continues from the statistics that the first use updated."""
    model = model_of_text(SHARED)
    step = training_step(model)
    assert step.state == ("m", "v")
    x = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
    rate = np.array(0.1, np.float32)
    feeds = {"x": x, "target": np.zeros(4, np.int64), "learning_rate": rate}
    got = run(step.model, {**feeds, **first_values(step, model)})
    # The output of the first use has mean 0 and, by the biased estimate, variance 1.
    np.testing.assert_allclose(got["m.next"], 0.09 * x.mean(0), rtol=1e-4, atol=1e-6)
    expected = 0.81 + 0.09 * x.var(0, ddof=1) + 0.1 * 4 / 3
    np.testing.assert_allclose(got["v.next"], expected, rtol=1e-4)


def test_statistics_that_are_computed_are_not_carried() -> None:
    """A layer whose running statistics are computed by nodes uses the batch's, and has no state."""
    text = "<float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] k = {0,2,-1}> { m = Neg(k) "
    text += "v = Exp(k) y = BatchNormalization(x, s, b, m, v) }"
    model = model_of_text(f"g (float[4,3] x) => (float[4,3] y) {text}")
    step = training_step(model, StepOptions(loss="mse"))
    assert step.state == ()
    x = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
    rate = np.array(0.1, np.float32)
    feeds = {"x": x, "target": np.zeros((4, 3), np.float32), "learning_rate": rate}
    got = run(step.model, {**feeds, **first_values(step, model)})
    np.testing.assert_allclose(got["loss"], 1.0, rtol=1e-4)


@pytest.mark.parametrize(
    ("changes", "demand"),
    [
        ({"float[4,3]": "float[1,3]"}, "two or more values in each channel"),
        ({"float[4,3]": "float[0,3]"}, "two or more values in each channel"),
        (
            {"float[4,3] x": "float[4,3] x, float[3] w", "h, s, b, m, v": "h, s, b, m, w"},
            "'w' is fed as data",
        ),
        ({"(x, s, b, m, v)": "(x, s, m, m, v)"}, "'m' is fed as data, or other nodes"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, str], demand: str) -> None:
    """``training_step`` refuses a BatchNormalization with less than two values per channel.

    Running statistics are refused if callers feed them as data, or if a node also reads them for
    another purpose.
    """
    text = SHARED
    for before, after in changes.items():
        text = text.replace(before, after)
    with pytest.raises(ModelError, match=demand):
        training_step(model_of_text(text))


@pytest.mark.parametrize("exporter", ["dyn", "tr"])
@pytest.mark.parametrize("rematerialise", ["none", "sqrt"])
def test_without_running_statistics_a_batch_goes_by_its_own(
    exporter: str, rematerialise: Rematerialisation
) -> None:
    """Exports with track_running_stats=False have no state, and their losses equal PyTorch's."""
    model = onnx.load(FAULTS / f"bn_no_running_stats_{exporter}.onnx")
    step = training_step(model, StepOptions(rematerialise=rematerialise))
    assert step.state == ()
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6)).astype(np.float32)
    feeds = {step.inputs[0]: x, "target": np.array([0, 2])}
    losses, _ = trained(step, model, feeds, steps=5, rate=0.1)
    # PyTorch 2.13 with equal weights and data, SGD with learning rate 0.1.
    expected = [1.2452272, 0.0410627, 0.0289222, 0.0233458, 0.0198665]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    evaluated = run(evaluation_graph(model), {**feeds, **materialise(model)})
    np.testing.assert_allclose(evaluated["loss"], losses[0], rtol=1e-5)


def test_a_momentum_of_one_averages_all_batches() -> None:
    """With momentum 1, a training step averages the running statistics over all batches.

    PyTorch exports momentum=None, which asks for this average, as momentum 1. The step therefore
    departs from ONNX's formula, by which momentum 1 never changes the statistics.
    """
    text = NETWORK.replace("epsilon = 0.001, momentum = 0.7", "momentum = 1.0")
    model = network(text=text)
    step = training_step(model)
    assert "norm2_running_mean.batches" in step.state
    feeds = {"target": batch()["target"], "learning_rate": np.array(0, np.float32)}
    unaveraged = network(text=text.replace("momentum = 1.0", "momentum = 0.0"))
    last = training_step(unaveraged)
    carried, batches = first_values(step, model), []
    for scale in (1, 2, 5):
        data = {**feeds, "x": scale * batch()["x"]}
        results = run(last.model, {**data, **first_values(last, unaveraged)})
        batches.append(results["norm2_running_var.next"])
        after = run(step.model, {**data, **carried})
        carried = {c.input: after[c.output] for c in step.carried}
        np.testing.assert_allclose(
            carried["norm2_running_var"], np.mean(batches, axis=0), rtol=1e-4
        )


def test_evaluation_reads_each_parameter() -> None:
    """A parameter stays an input that evaluation reads, even if only unused nodes make it one."""
    model = model_of_text(
        "g (float[4,3] x) => (float[4,3] y) <float[3] w = {1.2345678, 2.345678, 3.1234567}> "
        "{ unused = Mul(x, w) e = Neg(w) y = Pow(x, e) }"
    )
    graph = evaluation_graph(model, loss="mse").graph
    assert "w" in {name for node in graph.node for name in node.input}


def test_evaluation_by_batch_statistics_ignores_the_running_ones() -> None:
    """Evaluation by batch statistics uses running statistics only in frozen layers."""
    model = network()
    values = materialise(model)
    far = {name: np.full_like(values[name], 50.0) for name in RUNNING}

    def loss(freeze: tuple[str, ...] = (), **changed: Array) -> float:
        graph = evaluation_graph(model, batch_statistics=True, freeze=freeze)
        return float(run(graph, {**batch(), **values, **changed})["loss"])

    assert loss(**far) == loss()
    assert loss(("*_running_*",), **far) != loss(("*_running_*",))


def test_convolutions_normalize_images_like_elementwise_operators() -> None:
    """A CPU step normalizes large images by Conv nodes, and computes what a portable step does."""
    rng = np.random.default_rng(3)
    shapes = dict.fromkeys(("scale", "shift", "running_mean", "running_var"), (16,))
    model = model_of_text(
        """g (float[2,16,24,24] x) => (float[2,16,24,24] y) {
            three = Constant<value = float {3}>() far = Add(x, three)
            a = Mul(far, gain)
            n = BatchNormalization(a, scale, shift, running_mean, running_var)
            y = Relu(n)
        }""",
        weights={
            name: rng.uniform(0.5, 1.5, shape).astype(np.float32)
            for name, shape in {**shapes, "gain": (16, 1, 1)}.items()
        },
    )
    portable, special = portable_and_special(model, "cpu", blocked_convolutions=True)
    kinds = [{node.op_type for node in step.graph.node} for step in (portable, special)]
    assert "Conv" in kinds[1] - kinds[0]
    assert_alike(portable, special, tolerance=1e-4)
