"""Dropout whose mask is a hash of the element's position.

ONNX Runtime's Dropout draws on one CPU thread, and its masks repeat in a replayed CUDA graph. Here
an element stays if its row's random number times its column's, modulo 2³², is below a limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from onnx import TensorProto

from onnxstep.axes import split_at
from onnxstep.builder import Builder, Value
from onnxstep.registry import Node
from onnxstep.update import Transition

_HALF_RANGE = 2**31
# Carried input that counts runs on CUDA.
RUNS = "dropout.runs"
# Odd number next to 2³² divided by the golden ratio, as a signed number of 32 bits.
_GOLDEN = 0x9E3779B1 - 2**32


def forward(node: Node) -> Sequence[Value]:
    """Result and mask of a Dropout node; empty if the node stays as it is.

    A node stays if the provider is unknown, or if the ratio is not a constant between 0 and 1. It
    also stays if training mode is not switched on by a constant.
    """
    op, x = node.op, node.x
    ratio, training = (op.array_of(node.optional_input(place)) for place in (1, 2))
    if op.provider is None or ratio is None or not training or not 0 < ratio < 1 or not x.size:
        return ()
    stays = 1 - float(ratio)
    # For a ratio below 2⁻³³ the limit would round to 2³¹, which int32 cannot hold.
    limit_number = min(round((2 * stays - 1) * _HALF_RANGE), _HALF_RANGE - 1)
    limit = op.scalar(limit_number, TensorProto.INT32)
    mask, shape = op.Less(_hash_matrix(node), limit), op.integers(*x.shape)
    node.output(1)
    if op.provider == "cuda":
        kept = op.Where(op.Reshape(mask, shape), x, op.scalar(0.0, x.elem_type))
        return kept * (1 / stays), op.Reshape(mask, shape)
    # This Cast must differ from the Cast in the backward pass: ONNX Runtime would merge equal nodes
    # and keep the float result in memory.
    factors = op.Reshape(op.Cast(mask, to=x.elem_type) * (1 / stays), shape)
    return x * factors, op.Reshape(mask, shape)


def counted_runs(op: Builder) -> Iterator[Transition]:
    """Yield one transition, of the count of graph runs, if Dropout masks use this count."""
    if RUNS in op.values:
        count = op.values[RUNS]
        yield Transition(count, op.rename(count + 1.0, f"{RUNS}.next"), "state")


def _hash_matrix(node: Node) -> Value:
    """Hash of 32 bits for each element of the Dropout node's input, as a matrix [rows, columns].

    The rows run over the input's first axes, the columns over its last axes.
    """
    op, shape = node.op, node.x.shape
    splits = [(math.prod(shape[:axis]), math.prod(shape[axis:])) for axis in range(len(shape) + 1)]
    sizes = min(splits, key=sum)
    draw = _numbers_from_run_count if op.provider == "cuda" else _draw_in_runtime
    rows, columns = split_at(draw(node, sum(sizes)), sizes, axis=0)
    return rows.reshape(-1, 1) * columns


def _draw_in_runtime(node: Node, count: int) -> Value:
    op, seed = node.op, node.attribute("seed")
    drawn = op.RandomUniform(
        dtype=TensorProto.DOUBLE,
        low=-float(_HALF_RANGE),
        high=float(_HALF_RANGE),
        shape=[count],
        **({} if seed is None else {"seed": float(seed + 1)}),
    )
    # Successive draws depend linearly on each other, which the permutation prevents.
    return _permute_integers(op.Cast(drawn, to=TensorProto.INT32))


def _numbers_from_run_count(node: Node, count: int) -> Value:
    op, seed = node.op, node.attribute("seed")
    # A replayed CUDA graph repeats the numbers of ONNX Runtime's generators, so steps count runs.
    runs = op.values.get(RUNS) or op.input(RUNS, (), TensorProto.FLOAT)
    table = _random(count, count)
    layer = [len(op.nodes), 0] if seed is None else [abs(int(seed)), 1]
    first, second = (op.constant(number) for number in _random(2, layer)[:, None])
    run = op.Cast(runs, to=TensorProto.INT32) * op.constant(np.array([_GOLDEN], np.int32))
    return _permute_integers(_permute_integers(op.constant(table) + (run + first)) + second)


def _random(count: int, seed: int | list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    generator = np.random.default_rng(seed)
    return generator.integers(-_HALF_RANGE, _HALF_RANGE, count, dtype=np.int32)


def _permute_integers(x: Value) -> Value:
    """Compute x (2 x + 1) modulo 2³², which permutes all numbers of 32 bits."""
    return x * (x + x + x.op.scalar(1, x.elem_type))
