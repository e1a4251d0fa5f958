"""Gradients of elementwise operators; the caller sums them to the shape of a broadcast operand."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient


@gradient("Add", versions=(7, 13, 14))
def add(_: Builder, __: Node, dy: Value) -> Cotangents:
    """Gradient from d(a + b) = da + db."""
    return dy, dy


@gradient("Sub", versions=(7, 13, 14))
def sub(_: Builder, __: Node, dy: Value) -> Cotangents:
    """Gradient from d(a - b) = da - db."""
    return dy, -dy


@gradient("Mul", versions=(7, 13, 14))
def mul(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(a b) = b da + a db."""
    a, b = node.input(0), node.input(1)
    return dy * b, dy * a


@gradient("Div", versions=(7, 13, 14))
def div(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(a / b) = da / b - (a / b) db / b."""
    da = dy / node.input(1)
    return da, -(da * node.y)


@gradient("Mod", versions=(10, 13, 28))
def mod(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(a mod b) = da - q db, where the rounded q is (a - y) / b for the result y."""
    a, b = node.input(0), node.input(1)
    return dy, dy * ((node.y - a) / b) if node.wants(1) else None


@gradient("Sum", versions=(8, 13))
def sum_(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(a + b + …) = da + db + …."""
    return [dy] * len(node.inputs)


@gradient("Mean", versions=(8, 13))
def mean(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d((a + b + …) / n) = (da + db + …) / n, for n operands."""
    count = len(node.inputs)
    return [dy * (1 / count)] * count


@gradient("Pow", versions=(7, 12, 13, 15))
def pow_(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(aᵇ) = b aᵇ⁻¹ da + aᵇ ln a db.

    As in PyTorch, the factor of da is 0 if b = 0, and the factor of db is 0 if a = 0 ≤ b.
    """
    a, b = node.input(0), node.input(1)
    da = dy * _slope_of_power(op, a, b, node.y) if node.wants(0) else None
    if not node.wants(1):
        return da, None
    db = dy * _slope_of_exponential(op, a, b, node.y)
    return da, db.cast(b.elem_type)


def _slope_of_power(op: Builder, a: Value, b: Value, y: Value) -> Value:
    exponent_array = op.array_of(b)
    if exponent_array is not None and exponent_array.size == 1:
        return _slope_of_constant_power(op, a, float(exponent_array.item()), y)
    exponent = b.cast(a.elem_type)
    zero = op.scalar(0.0, a.elem_type)
    return op.Where(op.Equal(exponent, zero), zero, exponent * op.Pow(a, exponent - 1.0))


def _slope_of_constant_power(op: Builder, a: Value, b: float, y: Value) -> Value:
    """Derivative b aᵇ⁻¹ of y = aᵇ; from y, without another Pow node, if b is 1/2 or negative."""
    if b in {0.0, 1.0}:
        return op.scalar(b, a.elem_type)
    if b == 2.0:
        return a * 2.0
    if b == 0.5:
        return 0.5 / y
    return y / a * b if b < 0 else op.Pow(a, op.scalar(b - 1, a.elem_type)) * b


def _slope_of_exponential(op: Builder, a: Value, b: Value, y: Value) -> Value:
    """aᵇ ln a = y ln a, but 0 if a = 0 ≤ b."""
    slope = y * op.Log(a)
    base = op.array_of(a)
    if base is not None and bool(np.all(base > 0)):
        return slope
    zero = op.scalar(0.0, a.elem_type)
    grows = op.Not(op.Less(b, op.scalar(0.0, b.elem_type)))
    return op.Where(op.And(op.Equal(a, zero), grows), zero, slope)


@gradient("Neg", versions=(6, 13))
def neg(_: Builder, __: Node, dy: Value) -> Cotangents:
    """Gradient from d(-x) = -dx."""
    return -dy


@gradient("Reciprocal", versions=(6, 13))
def reciprocal(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(1 / x) = -y² dx, with y = 1 / x."""
    return -(dy * node.y * node.y)


@gradient("Sqrt", versions=(6, 13))
def sqrt(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(√x) = dx / (2 √x)."""
    return dy * 0.5 / node.y


@gradient("Log", versions=(6, 13))
def log(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(ln x) = dx / x."""
    return dy / node.x


def _register_slope(
    op_type: str, versions: tuple[int, ...], slope: Callable[[Node], Value]
) -> None:
    @gradient(op_type, versions=versions)
    def rule(_: Builder, node: Node, dy: Value) -> Cotangents:
        return dy * slope(node)


_register_slope("Abs", (6, 13), lambda n: n.op.Sign(n.x))  # 0 at x = 0, as in PyTorch
_register_slope("Exp", (6, 13), lambda n: n.y)
_register_slope("Sigmoid", (6, 13), lambda n: n.y * (1.0 - n.y))
_register_slope("Softplus", (1, 22), lambda n: n.op.Sigmoid(n.x))
_register_slope("Erf", (9, 13), lambda n: n.op.Exp(-(n.x * n.x)) * (2 / math.sqrt(math.pi)))
_register_slope("Sin", (7, 22), lambda n: n.op.Cos(n.x))
_register_slope("Cos", (7, 22), lambda n: -n.op.Sin(n.x))
_register_slope("Tan", (7, 22), lambda n: 1.0 + n.y * n.y)
_register_slope("Asin", (7, 22), lambda n: 1.0 / n.op.Sqrt(1.0 - n.x * n.x))
_register_slope("Acos", (7, 22), lambda n: -1.0 / n.op.Sqrt(1.0 - n.x * n.x))
_register_slope("Atan", (7, 22), lambda n: 1.0 / (1.0 + n.x * n.x))
_register_slope("Sinh", (9, 22), lambda n: n.op.Cosh(n.x))
_register_slope("Cosh", (9, 22), lambda n: n.op.Sinh(n.x))
_register_slope("Asinh", (9, 22), lambda n: 1.0 / n.op.Sqrt(n.x * n.x + 1.0))
_register_slope("Acosh", (9, 22), lambda n: 1.0 / n.op.Sqrt(n.x * n.x - 1.0))
_register_slope("Atanh", (9, 22), lambda n: 1.0 / (1.0 - n.x * n.x))


def indicator(condition: Value, like: Value) -> Value:
    """1 where the condition is true, else 0, in the element type of ``like``."""
    return condition.op.Cast(condition, to=like.elem_type)


@gradient("Where", versions=(9, 16))
def where(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(c ? a : b) = c ? da : db; NaN of the other branch stays out of it."""
    chosen, zero = node.input(0), op.scalar(0.0, dy.elem_type)
    da = op.Where(chosen, dy, zero) if node.wants(1) else None
    db = op.Where(chosen, zero, dy) if node.wants(2) else None
    return None, da, db


@gradient("Max", versions=(8, 12, 13))
@gradient("Min", versions=(8, 12, 13))
def extremum(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The gradient goes to the operand that is the result; equal ones share it, as in PyTorch."""
    if len(node.inputs) == 1:
        return dy
    operands, y = _comparable(op, node)
    shares = [indicator(op.Equal(x, y), dy) for x in operands if x is not None]
    part = dy / functools.reduce(operator.add, shares)
    return [part * share for share in shares]


@gradient("Clip", versions=(11, 12, 13))
def clip(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The gradient goes to x within or at the bounds, as in PyTorch; bounds are not trained."""
    if node.wants(1) or node.wants(2):
        raise ModelError(f"{node.label}: bounds of Clip are not trained; freeze them")
    operands, y = _comparable(op, node)
    return dy * indicator(op.Equal(operands[0], y), dy)


def _comparable(op: Builder, node: Node) -> tuple[list[Value | None], Value]:
    """Operands and result of Max, Min or Clip, rounded alike."""
    operands = list(node.inputs)
    if op.provider == "cuda" or node.y.elem_type != TensorProto.FLOAT16:
        return operands, node.y
    # ONNX Runtime's CPU provider computes these nodes in float32, from operands that it rounded for
    # other nodes only.
    wide = [x and x.cast(TensorProto.FLOAT) for x in operands]
    return wide, op.emit(node.proto.op_type, wide)[0]
