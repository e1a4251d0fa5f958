"""Gradients of reductions over axes, and of running sums along one axis."""

from __future__ import annotations

import numpy as np

from onnxstep.axes import reduced
from onnxstep.builder import Builder, Value
from onnxstep.registry import Cotangents, Node, gradient
from onnxstep.rules.math import indicator


def _reduced_axes(node: Node) -> tuple[int, ...]:
    # The axes are an attribute in old opsets, and an input in later ones.
    listed = node.attribute("axes")
    if listed is None:
        listed = node.constant(1, "axes")
    if listed is not None and np.size(listed):
        return tuple(sorted(int(axis) % node.x.rank for axis in np.ravel(listed)))
    return () if node.attribute("noop_with_empty_axes") else tuple(range(node.x.rank))


def _reinsert_reduced_axes(node: Node, result_or_gradient: Value) -> Value:
    axes = _reduced_axes(node)
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(node.x.shape))
    if result_or_gradient.shape == shape:
        return result_or_gradient
    return result_or_gradient.reshape(*shape)


def _broadcast_to_input(op: Builder, node: Node, dy: Value) -> Value:
    reduced_dims = _reinsert_reduced_axes(node, dy)
    if reduced_dims.shape == node.x.shape:
        return reduced_dims
    return op.Expand(reduced_dims, op.integers(*node.x.shape))


@gradient("ReduceSum", versions=(1, 11, 13))
def reduce_sum(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(Σ x) = Σ dx."""
    return _broadcast_to_input(op, node, dy)


@gradient("ReduceMean", versions=(1, 11, 13, 18))
def reduce_mean(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(Σ x / n) = Σ dx / n, for n elements."""
    return _broadcast_to_input(op, node, dy * (dy.size / max(node.x.size, 1)))


@gradient("ReduceMax", versions=(1, 11, 12, 13, 18, 20))
@gradient("ReduceMin", versions=(1, 11, 12, 13, 18, 20))
def reduce_extremum(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The gradient goes to the extreme element; equal extremes share it, as in PyTorch's amax."""
    extreme = indicator(op.Equal(node.x, _reinsert_reduced_axes(node, node.y)), dy)
    count = reduced("ReduceSum", extreme, _reduced_axes(node), keepdims=True)
    return extreme * (_reinsert_reduced_axes(node, dy) / count)


@gradient("ReduceL1", versions=(1, 11, 13, 18))
def reduce_l1(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(Σ |x|) = Σ sgn(x) dx; sgn(0) = 0, as in PyTorch."""
    return op.Sign(node.x) * _reinsert_reduced_axes(node, dy)


@gradient("ReduceL2", versions=(1, 11, 13, 18))
def reduce_l2(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(√Σ x²) = Σ x dx / √Σ x²; 0 if the norm is 0, as in PyTorch."""
    zero = op.scalar(0.0, dy.elem_type)
    ratio = op.Where(op.Equal(node.y, zero), zero, dy / node.y)
    return node.x * _reinsert_reduced_axes(node, ratio)


@gradient("ReduceLogSum", versions=(1, 11, 13, 18, 28))
def reduce_log_sum(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(ln Σ x) = Σ dx / Σ x, where Σ x is eʸ for the result y."""
    return _broadcast_to_input(op, node, dy / op.Exp(node.y))


@gradient("ReduceLogSumExp", versions=(1, 11, 13, 18, 28))
def reduce_log_sum_exp(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(ln Σ eˣ) = Σ eˣ dx / Σ eˣ, computed as Σ eˣ⁻ʸ dx for the result y."""
    softmax = op.Exp(node.x - _reinsert_reduced_axes(node, node.y))
    return softmax * _reinsert_reduced_axes(node, dy)


@gradient("ReduceSumSquare", versions=(1, 11, 13, 18))
def reduce_sum_square(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(Σ x²) = Σ 2 x dx."""
    return node.x * _reinsert_reduced_axes(node, dy * 2.0)


@gradient("ReduceProd", versions=(1, 11, 13, 18))
def reduce_prod(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(Π x) = Σᵢ (Πⱼ xⱼ) dxᵢ, with the product over j ≠ i; x may contain zeros."""
    axes, zero = _reduced_axes(node), op.scalar(0.0, dy.elem_type)
    is_zero = op.Equal(node.x, zero)
    zero_here = indicator(is_zero, dy)
    zeros = reduced("ReduceSum", zero_here, axes, keepdims=True)
    factors = op.Where(is_zero, op.scalar(1.0, dy.elem_type), node.x)
    others = reduced("ReduceProd", factors, axes, keepdims=True) / factors
    slope = op.Where(op.Equal(zeros, zero_here), others, zero)
    return slope * _reinsert_reduced_axes(node, dy)


@gradient("CumSum", versions=(11, 14))
def cum_sum(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of yⱼ = Σᵢ xᵢ over i ≤ j: dxᵢ = Σⱼ dyⱼ over j ≥ i."""
    exclusive, reverse = node.attribute("exclusive"), int(not node.attribute("reverse"))
    return op.CumSum(dy, node.input(1), exclusive=exclusive, reverse=reverse), None
