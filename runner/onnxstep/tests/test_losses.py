"""Every loss has the value of its formula, and its gradient agrees with finite differences."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from graph_text import run
from onnxstep.builder import Builder
from onnxstep.errors import ModelError
from onnxstep.forward import Forward, close_model
from onnxstep.losses import (
    Huber,
    LossFunction,
    MeanAbsoluteError,
    MeanSquaredError,
    NegativeLogLikelihood,
    OwnOutput,
    SigmoidCrossEntropy,
    SoftmaxCrossEntropy,
)

RNG = np.random.default_rng(2)
LOGITS = RNG.standard_normal((2, 3, 4)) * 3
CLASSES = np.array([[0, 3, 1], [2, 2, 0]])
HOLES = np.array([[0, -100, 1], [2, -100, 0]])
WEIGHTS = (0.5, 2.0, 1.0, 3.0)
NUMBERS = RNG.standard_normal((2, 3, 4)) * 2
SHARES = RNG.random((2, 3, 4))


def log_softmax(z: np.ndarray) -> np.ndarray:
    """Log-probabilities along the last axis."""
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def cross_entropy(
    z: np.ndarray, t: np.ndarray, weights: tuple[float, ...] = (1.0,) * 4, smoothing: float = 0.0
) -> float:
    """The documented formula of torch.nn.functional.cross_entropy, with ignore_index -100."""
    counted = t.ravel() != -100
    log_p = log_softmax(z).reshape(-1, 4)[counted]
    classes, w = t.ravel()[counted], np.array(weights)
    hard = -(w[classes] * log_p[np.arange(len(classes)), classes]).sum() / w[classes].sum()
    smooth = -(w * log_p).sum() / w[classes].sum() / 4
    return float((1 - smoothing) * hard + smoothing * smooth)


def softplus(z: np.ndarray) -> np.ndarray:
    """The logarithm of 1 + eᶻ."""
    return np.logaddexp(0, z)


ERROR = LOGITS - NUMBERS
CASES = {
    "softmax": (SoftmaxCrossEntropy(), CLASSES, cross_entropy(LOGITS, CLASSES)),
    "softmax_weights": (
        SoftmaxCrossEntropy(weights=WEIGHTS),
        CLASSES,
        cross_entropy(LOGITS, CLASSES, WEIGHTS),
    ),
    "softmax_ignore": (SoftmaxCrossEntropy(ignore_index=-100), HOLES, cross_entropy(LOGITS, HOLES)),
    "softmax_smoothing": (
        SoftmaxCrossEntropy(label_smoothing=0.2),
        CLASSES,
        cross_entropy(LOGITS, CLASSES, smoothing=0.2),
    ),
    "softmax_smoothing_ignore": (
        SoftmaxCrossEntropy(ignore_index=-100, label_smoothing=0.2),
        HOLES,
        cross_entropy(LOGITS, HOLES, smoothing=0.2),
    ),
    "softmax_all": (
        SoftmaxCrossEntropy(WEIGHTS, -100, 0.1),
        HOLES,
        cross_entropy(LOGITS, HOLES, WEIGHTS, 0.1),
    ),
    "nll": (
        NegativeLogLikelihood(),
        CLASSES,
        float(-np.take_along_axis(LOGITS, CLASSES[..., None], -1).mean()),
    ),
    "sigmoid": (SigmoidCrossEntropy(), SHARES, float((softplus(LOGITS) - LOGITS * SHARES).mean())),
    "sigmoid_positive_weight": (
        SigmoidCrossEntropy(3.0),
        SHARES,
        float((3 * SHARES * softplus(-LOGITS) + (1 - SHARES) * softplus(LOGITS)).mean()),
    ),
    "mse": (MeanSquaredError(), NUMBERS, float((ERROR**2).mean())),
    "l1": (MeanAbsoluteError(), NUMBERS, float(abs(ERROR).mean())),
    "huber": (
        Huber(0.7),
        NUMBERS,
        float(np.where(abs(ERROR) <= 0.7, ERROR**2 / 2, 0.7 * (abs(ERROR) - 0.35)).mean()),
    ),
}


def graph_of(
    rule: LossFunction, shape: tuple[int, ...], opset: int = 18, elem_type: int = TensorProto.DOUBLE
) -> onnx.ModelProto:
    """A model that computes a loss and its gradient from the inputs ``output`` and ``target``."""
    op = Builder([helper.make_opsetid("", opset)], 10)
    value = op.input("output", shape, elem_type)
    loss = rule.build(value, "target")
    target = [loss.target] if loss.target else []
    outputs = [op.rename(loss.value, "loss"), op.rename(loss.cotangent, "cotangent")]
    return close_model(Forward(op, (), (), {}), [value, *target], outputs, "loss")


@pytest.mark.parametrize("opset", [16, 18, 21])
@pytest.mark.parametrize("name", CASES)
def test_a_loss_and_its_cotangent(name: str, opset: int) -> None:
    """The loss equals PyTorch's formula, and its gradient agrees with a central difference."""
    rule, target, expected = CASES[name]
    model = ReferenceEvaluator(graph_of(rule, LOGITS.shape, opset))
    feeds = {"output": LOGITS, "target": target}
    loss, cotangent = model.run(["loss", "cotangent"], feeds)
    np.testing.assert_allclose(loss, expected, rtol=1e-9)
    assert np.shape(loss) == ()
    direction = RNG.standard_normal(LOGITS.shape)
    ahead, behind = (
        model.run(["loss"], {**feeds, "output": LOGITS + step * direction})[0]
        for step in (1e-6, -1e-6)
    )
    np.testing.assert_allclose((cotangent * direction).sum(), (ahead - behind) / 2e-6, rtol=1e-6)


def test_the_models_own_output_is_its_loss() -> None:
    """With ``OwnOutput``, the loss is the model's only output element, whose gradient is 1."""
    got = ReferenceEvaluator(graph_of(OwnOutput(), (1, 1))).run(None, {"output": np.array([[2.5]])})
    assert got == [2.5, [[1.0]]]


def test_large_logits_do_not_overflow() -> None:
    """Logits of several thousand give a finite loss and finite gradients."""
    model = graph_of(SoftmaxCrossEntropy(), LOGITS.shape, elem_type=TensorProto.FLOAT)
    got = run(model, {"output": (LOGITS * 1000).astype(np.float32), "target": CLASSES})
    assert all(np.isfinite(array).all() for array in got.values())


@pytest.mark.parametrize(
    ("rule", "shape", "demand"),
    [
        (SoftmaxCrossEntropy(), (3,), "class scores"),
        (SoftmaxCrossEntropy(), (), "class scores"),
        (SoftmaxCrossEntropy(weights=(1.0, 2.0)), (2, 3), "one for each class"),
        (OwnOutput(), (2, 3), "expected one number"),
    ],
)
def test_an_output_that_does_not_fit_is_refused(
    rule: LossFunction, shape: tuple[int, ...], demand: str
) -> None:
    """The error for an output that does not fit the loss says what the loss needs."""
    with pytest.raises(ModelError, match=demand):
        graph_of(rule, shape)
