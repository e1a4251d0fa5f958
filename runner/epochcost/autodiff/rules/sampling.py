"""Sampling at positions that are data: affine grids; what reads images between elements."""

from __future__ import annotations

import math

import numpy as np
from onnx import helper

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.node import Node
from epochcost.autodiff.registry import Cotangents, gradient, refused

refused(
    "GridSample",
    versions=(16, 20, 22),
    reason="its samples lie between elements, and the scatter to their neighbours is not written",
)
refused(
    "RoiAlign",
    versions=(10, 16, 22),
    reason="its samples lie between elements, in boxes that a detector finds itself",
)


@gradient("AffineGrid", versions=(20,))
def affine_grid(op: Builder, node: Node, dy: Value) -> Cotangents:
    """For y = θ [p, 1] at each position p: dθ = Σ dy [p, 1]ᵀ; θ = [I, 0] yields the p."""
    theta, rank = node.x, dy.shape[-1]
    size = node.constant(1, "size")
    assert size is not None
    dtype = helper.tensor_dtype_to_np_dtype(theta.elem_type)
    identity = op.constant(np.eye(rank, rank + 1, dtype=dtype)[np.newaxis])
    one = op.integers(1, *(int(length) for length in size[1:]))
    places = op.AffineGrid(identity, one, align_corners=node.attribute("align_corners"))
    count = math.prod(dy.shape[1:-1])
    positions = op.Reshape(places, op.integers(count, rank))
    rows = op.Transpose(op.Reshape(dy, op.integers(dy.shape[0], count, rank)), perm=[0, 2, 1])
    return op.Concat(
        op.MatMul(rows, positions), op.reduce("ReduceSum", rows, [2], keepdims=True), axis=2
    )
