"""A step reports its trained and untrained tensors, and warns of likely mistakes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from exports import merged
from graph_text import model_of_text, run
from onnxstep import LeftOut, StepOptions, evaluation_graph, first_values, training_step
from onnxstep.errors import ModelWarning

MODEL = """g (float[8,2] x) => (float[8,2] y, float[8,2] z)
    <float[2,2] w = {0.12345678, 0.2, 0.3, 0.4}, float[2] b = {0, 0}, float[2] other = {0.5, 0.6},
    float bound = {6}> {
        h = MatMul(x, w) c = Min(h, bound) d = Clip(c, , bound) y = Add(d, b) z = Mul(x, other) }"""


def test_every_float_tensor_is_accounted_for() -> None:
    """``trained_set`` lists each float tensor as trained, or as left out with a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = model_of_text(MODEL.replace("c = Min(h, bound)", "c = Neg(h)"))
        step = training_step(model, StepOptions(loss="mse", output="y", freeze=["b"]))
    assert step.trained_set.trained == ("w",)
    assert step.trained_set.left_out == (
        LeftOut("bound", 1, "only bounds, shapes or nothing read it"),
        LeftOut("b", 2, "frozen"),
        LeftOut("other", 2, "the loss does not depend on it"),
    )
    assert step.trained_set.doubts == ()


def test_a_doubt_is_a_warning_at_the_call() -> None:
    """Likely mistakes in the choice of trained tensors are warnings that point to the caller."""
    with pytest.warns(ModelWarning, match=r"each is trained separately: 1\.norm\.weight") as caught:
        step = training_step(merged(), StepOptions(loss="mse"))
    assert [str(warning.message) for warning in caught] == [*step.trained_set.doubts]
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore::onnxstep.errors.ModelWarning")
def test_layers_that_were_merged_learn_apart() -> None:
    """Equal scales of two layers that the exporter stored as one tensor become two tensors."""
    model = merged()
    step = training_step(model, StepOptions(loss="mse"))
    assert len(step.parameters) == 6
    rng = np.random.default_rng(3)
    data = {name: rng.standard_normal((8, 4)).astype(np.float32) for name in ("x", "target")}
    first = first_values(step, model)
    got = run(step.model, {**data, "learning_rate": np.array(0.5, np.float32), **first})
    assert abs(got["1.norm.weight.next"] - got["0.norm.weight.next"]).max() > 0.01
    after = {name: got[f"{name}.next"] for name in first}
    assert run(evaluation_graph(model, loss="mse"), {**data, **after})["loss"] < got["loss"]
