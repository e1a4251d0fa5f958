"""Sums over all axes but the channels on CUDA: at once, over the last axes first, or by a product.

    python benchmarks/rules/channel_sums.py

By the printed medians, of ResNet-50's tensors at 64 images, `onnxstep.reductions` chooses.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from interleaved import median_seconds, milliseconds
from onnx import parser

CASES = [(64, 64, 112, 112), (64, 256, 56, 56), (64, 512, 28, 28), (64, 2048, 7, 7)]
_HEADER = '<ir_version: 9, opset_import: ["" : 18]> g (float{shape} x) => (float[C] y) '
_ONCE = "{{ a = Constant <value_ints = [0, 2, 3]> () y = {reduction} <keepdims: int = 0> (x, a) }}"
_TWICE = (
    "{{ a = Constant <value_ints = [2, 3]> () b = Constant <value_ints = [0]> () "
    "p = {reduction} <keepdims: int = 0> (x, a) y = {reduction} <keepdims: int = 0> (p, b) }}"
)
_PRODUCT = (
    "{{ r = Constant <value_ints = [{rows}, {count}]> () m = Reshape(x, r) "
    "l = Constant <value_ints = [{count}, 1]> () "
    "o = ConstantOfShape <value = float[1] {{{each}}}> (l) "
    "q = MatMul(m, o) c = Constant <value_ints = [{shape[0]}, {shape[1]}]> () p = Reshape(q, c) "
    "b = Constant <value_ints = [0]> () y = {reduction} <keepdims: int = 0> (p, b) }}"
)


def model_of(body: str, reduction: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    """A graph that reduces x [N, C, H, W] to y [C]."""
    rows, count = math.prod(shape[:2]), math.prod(shape[2:])
    each = 1 if reduction == "ReduceSum" else 1 / count
    sizes = {"rows": rows, "count": count, "each": each}
    text = (_HEADER + body).format(shape=[*shape], reduction=reduction, **sizes)
    return parser.parse_model(text)


def main() -> None:
    """Time both forms in turn and print the medians, a line for each shape and reduction."""
    rng = np.random.default_rng(0)
    for shape in CASES:
        feeds = {"x": rng.standard_normal(shape, dtype=np.float32)}
        for reduction in ("ReduceSum", "ReduceMean"):
            forms = {"at once": _ONCE, "last axes first": _TWICE, "product": _PRODUCT}
            models = {name: model_of(body, reduction, shape) for name, body in forms.items()}
            line = milliseconds(median_seconds(models, feeds, provider="cuda"), 2)
            print(f"{shape!s:20} {reduction:11} {line}", flush=True)


if __name__ == "__main__":
    main()
