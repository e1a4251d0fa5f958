"""Run training steps, by default on onnx's reference evaluator, which supports every type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession

from graph_text import Array, model_of_text, shape_of
from onnxstep import Accumulation, TrainingStep, first_values

# First opset in which every operator's schema has bfloat16.
OPSET = 22
_CLASSES = 4
_PERCEPTRON = """g (float[16,12] x) => (float[16,4] logits)
    { h = Gemm(x, w, b) r = Relu(h) logits = Gemm(r, v, c) }"""
_NORMALIZED = """g (float[16,1,6,6] x) => (float[16,4] logits) {
    a = Conv<pads=[1,1,1,1]>(x, k, kb)
    n = BatchNormalization(a, scale, shift, mean, variance)
    r = Relu(n)
    p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(r)
    d = Conv(p, l)
    e = Relu(d)
    f = Flatten(e)
    logits = Gemm(f, v, c)
}"""


def perceptron(batch_size: int = 16) -> onnx.ModelProto:
    """Two dense layers, from x [batch_size, 12] to logits [batch_size, 4]."""
    text = _PERCEPTRON.replace("[16,", f"[{batch_size},")
    return _model_with_weights(text, OPSET, w=(12, 32), b=(32,), v=(32, 4), c=(4,))


def convolutional(opset: int = OPSET) -> onnx.ModelProto:
    """Two convolutions, one with BatchNormalization, from x [16, 1, 6, 6] to logits [16, 4]."""
    weights = {"k": (4, 1, 3, 3), "kb": (4,), "scale": (4,), "shift": (4,), "mean": (4,)}
    weights |= {"variance": (4,), "l": (8, 4, 3, 3), "v": (8, 4), "c": (4,)}
    return _model_with_weights(_NORMALIZED, opset, **weights)


def _model_with_weights(text: str, opset: int, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {}
    for name, shape in shapes.items():
        fan_in = np.prod(shape) / (shape[0] if len(shape) == 4 else shape[-1])
        drawn = rng.standard_normal(shape) * np.sqrt(1 / fan_in)
        first = np.full(shape, float(name in ("scale", "variance")))
        weights[name] = (drawn if len(shape) > 1 else first).astype("f4")
    return model_of_text(text, opset, weights=weights)


def batches(model: onnx.ModelProto, seed: int = 1) -> Iterator[dict[str, Array]]:
    """Yield batches without end: each example is the pattern of one of four classes plus noise."""
    rng = np.random.default_rng(seed)
    shape = shape_of(model.graph.input[0])
    patterns = rng.standard_normal((_CLASSES, *shape[1:]))
    while True:
        target = rng.integers(0, _CLASSES, shape[0])
        x = patterns[target] + rng.standard_normal(shape)
        yield {"x": x.astype("f4"), "target": target}


class Stepping:
    """Run a step again and again, each time with the values that the last step returned.

    ``carried`` has the current values by input name. ``evaluator`` runs the step's graph; the
    default is onnx's reference evaluator.
    """

    def __init__(
        self,
        step: TrainingStep,
        model: onnx.ModelProto,
        rate: float = 0.05,
        evaluator: ReferenceEvaluator | InferenceSession | None = None,
    ) -> None:
        self._step, self._rate = step, np.array(rate, np.float32)
        self._evaluator = evaluator or ReferenceEvaluator(step.model)
        self.carried = first_values(step, model)

    def __call__(self, batch: Mapping[str, Array]) -> float:
        """Run a step on ``batch`` and return its loss."""
        feeds = {**batch, self._step.learning_rate: self._rate, **self.carried}
        return self._run(self._evaluator, self._step, feeds)

    def accumulate(self, accumulation: Accumulation, batch: Mapping[str, Array]) -> None:
        """Add the gradients of a micro-batch to the sums of gradients in ``carried``."""
        evaluator = ReferenceEvaluator(accumulation.model)
        feeds = {**batch, **self.carried}
        self._run(evaluator, accumulation, {name: feeds[name] for name in evaluator.input_names})

    def _run(
        self,
        evaluator: ReferenceEvaluator | InferenceSession,
        step: TrainingStep | Accumulation,
        feeds: Mapping[str, Array],
    ) -> float:
        names = [step.loss, *(c.output for c in step.carried)]
        with np.errstate(all="ignore"):
            loss, *after = evaluator.run(names, dict(feeds))
        self.carried |= zip((c.input for c in step.carried), map(np.asarray, after), strict=True)
        return float(loss)
