"""Gradients of activation functions; at a kink the derivative is PyTorch's choice."""

from __future__ import annotations

import math

from onnx import TensorProto

from onnxstep.builder import Builder, Value
from onnxstep.registry import Cotangents, Node, gradient
from onnxstep.rules.math import indicator

# The tanh approximation of Gelu is x sigmoid(a x + b x³), since (1 + tanh u) / 2 = sigmoid(2 u).
_GELU_LINEAR = 2 * math.sqrt(2 / math.pi)
_GELU_CUBIC = _GELU_LINEAR * 0.044715


@gradient("Relu", versions=(6, 13, 14))
def relu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(max(x, 0)) = dx if y ≠ 0, else 0, with y = max(x, 0).

    Except on CUDA, the float32 factor is min(2¹²⁷ y, 1), too small only if 0 < y < 2⁻¹²⁷.
    """
    if op.provider == "cuda":
        return op.Where(op.Cast(node.y, to=TensorProto.BOOL), dy, op.scalar(0.0, dy.elem_type))
    if dy.elem_type == TensorProto.FLOAT:
        # The CPU runs HardSigmoid on all threads (benchmarks/rules/relu.py).
        return dy * op.HardSigmoid(node.y, alpha=2.0**127, beta=0.0)
    return dy * op.Cast(op.Cast(node.y, to=TensorProto.BOOL), to=dy.elem_type)


@gradient("LeakyRelu", versions=(6, 16))
def leaky_relu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The derivative of LeakyRelu is 1 for x > 0, else α."""
    return dy * _slope_one_if_positive(op, node.x, op.scalar(node.attribute("alpha"), dy.elem_type))


@gradient("PRelu", versions=(7, 9, 16))
def prelu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(max(x, 0) + s min(x, 0)) = (1 if x > 0, else s) dx + min(x, 0) ds."""
    x, slope = node.input(0), node.input(1)
    ds = dy * _min_with_zero(op, x) if node.wants(1) else None
    return dy * _slope_one_if_positive(op, x, slope), ds


@gradient("ThresholdedRelu", versions=(10, 22))
def thresholded_relu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The derivative of ThresholdedRelu is 1 for x > α, else 0."""
    return dy * indicator(_above(op, node.x, node.attribute("alpha")), dy)


@gradient("Elu", versions=(6, 22))
def elu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The derivative of Elu is 1 for x > 0, else α eˣ = y + α, with the result y."""
    alpha: float = node.attribute("alpha")
    if alpha == 1:
        return dy * (_min_with_zero(op, node.y) + 1.0)
    return dy * _slope_one_if_positive(op, node.x, node.y + alpha)


@gradient("Selu", versions=(6, 22))
def selu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The derivative of Selu is γ for x > 0, else γ α eˣ = y + γ α, with the result y."""
    gamma: float = node.attribute("gamma")
    alpha: float = node.attribute("alpha")
    positive = op.scalar(gamma, dy.elem_type)
    return dy * op.Where(_above(op, node.x, 0.0), positive, node.y + gamma * alpha)


@gradient("Shrink", versions=(9,))
def shrink(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The derivative of Shrink is 1 for |x| > λ, else 0, for every bias."""
    return dy * indicator(_above(op, op.Abs(node.x), node.attribute("lambd")), dy)


@gradient("HardSigmoid", versions=(6, 22))
def hard_sigmoid(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The derivative of HardSigmoid is α if the result y is between 0 and 1, else 0."""
    alpha: float = node.attribute("alpha")
    below_one = op.Less(node.y, op.scalar(1.0, dy.elem_type))
    inside = op.And(_above(op, node.y, 0.0), below_one)
    return dy * (indicator(inside, dy) * alpha)


@gradient("HardSwish", versions=(14, 22))
def hard_swish(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The derivative is h + x / 6 if |x| < 3, else h, with h = min(max(x / 6 + 1/2, 0), 1)."""
    sixth = node.x * (1 / 6)
    h = op.Clip(sixth + 0.5, op.scalar(0.0, dy.elem_type), op.scalar(1.0, dy.elem_type))
    inside = op.Less(op.Abs(node.x), op.scalar(3.0, dy.elem_type))
    return dy * (h + sixth * indicator(inside, dy))


@gradient("Tanh", versions=(6, 13))
def tanh(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(tanh x) = (1 - tanh² x) dx."""
    return dy * (1.0 - node.y * node.y)


@gradient("Softsign", versions=(1, 22))
def softsign(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(x / (1 + |x|)) = dx / (1 + |x|)²."""
    denominator = op.Abs(node.x) + 1.0
    return dy / (denominator * denominator)


@gradient("Gelu", versions=(20,))
def gelu(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(x Φ(x)) = (Φ(x) + x φ(x)) dx, or from the node's tanh approximation.

    Φ and φ are the distribution and the density of the standard normal distribution.
    """
    slope = gelu_tanh_slope if node.attribute("approximate") == "tanh" else gelu_slope
    return dy * slope(node.x)


def gelu_slope(x: Value) -> Value:
    """Φ(x) + x φ(x), with Φ(x) = (1 + erf(x / √2)) / 2 and φ(x) = exp(-x² / 2) / √(2 π)."""
    op, z = x.op, x * math.sqrt(0.5)
    # HardSigmoid multiplies and adds in one pass.
    distribution = op.HardSigmoid(op.Erf(z), alpha=0.5, beta=0.5)
    return distribution + z * op.Exp(-0.5 * math.log(math.pi) - z * z)


def gelu_tanh_slope(x: Value) -> Value:
    """Derivative σ(u) (1 + (1 - σ(u)) x u') of Gelu's tanh approximation x σ(u).

    Here u = a x + b x³ with constants a and b, so x u' = 3 u - 2 a x. σ is the sigmoid function.
    """
    u = x * (x * x * _GELU_CUBIC + _GELU_LINEAR)
    s = x.op.Sigmoid(u)
    return s * ((1.0 - s) * (u * 3.0 - x * (2 * _GELU_LINEAR)) + 1.0)


@gradient("Softmax", versions=(13,))
def softmax(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient p (dy - Σ p dy), with the softmax p of x; the sum runs along ``axis``."""
    weighted = dy * node.y
    axis = op.integers(node.attribute("axis"))
    return weighted - node.y * op.ReduceSum(weighted, axis, keepdims=1)


@gradient("LogSoftmax", versions=(13,))
def log_softmax(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient dy - p Σ dy, with the softmax p of x; the sum runs along ``axis``."""
    axis = op.integers(node.attribute("axis"))
    return dy - op.Exp(node.y) * op.ReduceSum(dy, axis, keepdims=1)


def _above(op: Builder, x: Value, threshold: float) -> Value:
    return op.Greater(x, op.scalar(threshold, x.elem_type))


def _slope_one_if_positive(op: Builder, x: Value, otherwise: Value) -> Value:
    return op.Where(_above(op, x, 0.0), op.scalar(1.0, x.elem_type), otherwise)


def _min_with_zero(op: Builder, x: Value) -> Value:
    # On the CPU, Clip takes less than half of Min's time.
    return op.Clip(x, None, op.scalar(0.0, x.elem_type))
