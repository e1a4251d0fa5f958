"""The gradient of an embedding that is also the last layer is the sum over both uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from graph_text import Array, model_of_text, run
from onnxstep import StepOptions, TrainingStep, first_values, training_step
from onnxstep.builder import Provider
from onnxstep.optimizers import Sgd

ROWS, WIDTH = 96, 4
# Numbers of looked-up rows below and above the limit for ScatterElements on the CPU.
PLACES = {"few": [[5, -2, 5]], "many": [[5, -2, 5, 7, 11]]}


def tied(read: int) -> onnx.ModelProto:
    """A model that looks up the same ids in the embeddings v and w; w is also the last layer.

    ``read`` is the number of ids.
    """
    rng = np.random.default_rng(1)
    return model_of_text(
        f"tied (int64[1,{read}] ids) => (float[1,{ROWS}] y) {{"
        " rows = Gather(w, ids) more = Gather(v, ids) both = Add(rows, more)"
        " one = Constant<value_ints = [1]>() h = ReduceSum<keepdims = 0>(both, one)"
        " t = Transpose(w) y = MatMul(h, t) }",
        weights={name: rng.normal(size=(ROWS, WIDTH)).astype("f4") for name in ("w", "v")},
    )


def moved(step: TrainingStep, model: onnx.ModelProto, data: Mapping[str, Array]) -> Array:
    """The change of ``step``'s first parameter by a step on ``data`` with learning rate 1."""
    values = first_values(step, model)
    got = run(step.model, {**values, **data, "learning_rate": np.array(1, np.float32)})
    name = step.parameters[0]
    return values[name] - got[f"{name}.next"]


@pytest.mark.parametrize("provider", ["cpu", "cuda"])
@pytest.mark.parametrize("places", PLACES)
def test_the_sum_is_that_of_both_uses(provider: Provider, places: str) -> None:
    """A step with learning rate 1 subtracts the gradients of both uses of w from w."""
    ids = np.array(PLACES[places])
    model = tied(ids.size)
    w, v = map(numpy_helper.to_array, model.graph.initializer)
    target = np.linspace(-1, 1, ROWS, dtype=np.float32)[None]
    step = training_step(model, StepOptions(loss="mse", optimizer=Sgd(), provider=provider))
    h = (w[ids[0]] + v[ids[0]]).sum(axis=0)
    dy = 2 * (w @ h - target[0]) / ROWS
    expected = np.outer(dy, h)
    np.add.at(expected, ids[0], dy @ w)
    change = moved(step, model, {"ids": ids, "target": target})
    np.testing.assert_allclose(change, expected, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize(
    ("provider", "places", "operator"),
    [("cpu", "few", "ScatterElements"), ("cpu", "many", "ScatterND"), ("cuda", "few", "ScatterND")],
)
def test_no_table_of_zeros_is_made(provider: Provider, places: str, operator: str) -> None:
    """The gradient of a tied embedding's rows is added to the gradient of the last layer.

    The embedding w is also the last layer. A node of the type ``operator`` adds the gradient of the
    looked-up rows to the last layer's gradient, without a table of zeros. The embedding v is not
    tied. Its gradient needs a table of zeros, to which a ScatterND node adds the rows.
    """
    model = tied(len(PLACES[places][0]))
    step = training_step(model, StepOptions(loss="mse", optimizer=Sgd(), provider=provider))
    kinds = Counter(node.op_type for node in step.model.graph.node if "Scatter" in node.op_type)
    assert kinds == Counter([operator, "ScatterND"])


@pytest.mark.parametrize(("provider", "products"), [("cpu", 1), ("cuda", 0)])
@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4)])
def test_columns_are_summed_by_a_product_on_the_cpu(
    provider: Provider, products: int, shape: tuple[int, ...]
) -> None:
    """A bias's gradient is a sum over all axes but the last; a CPU step computes it by MatMul."""
    text = ",".join(map(str, shape))
    bias = np.arange(4, dtype=np.float32)
    model = model_of_text(
        f"g (float[{text}] x) => (float[{text}] y) {{ y = Add(x, b) }}", weights={"b": bias}
    )
    step = training_step(model, StepOptions(loss="mse", optimizer=Sgd(), provider=provider))
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    change = moved(step, model, {"x": x, "target": np.zeros(shape, np.float32)})
    expected = (2 * (x + bias) / x.size).reshape(-1, 4).sum(axis=0)
    np.testing.assert_allclose(change, expected, rtol=1e-5, atol=1e-6)
    operators = Counter(node.op_type for node in step.model.graph.node)
    assert operators["MatMul"] == products
