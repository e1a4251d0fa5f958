"""What rotary embeddings do to pairs of elements, seen from the angles.

A pair (a, b) of x becomes (a cos - b sin, a sin + b cos); with da', db' the cotangents of that,
d(cos) = Σ a da' + b db' and d(sin) = Σ a db' - b da' over the heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epochcost.autodiff.attending import by_heads
from epochcost.autodiff.axes import cut_along
from epochcost.autodiff.builder import Value

_SEQUENCE = 3
_PAIR_AXIS = 4


@dataclass(frozen=True)
class Turning:
    """Which elements are pairs: the first ``width`` of each head (0 for all), as two halves or
    ``interleaved`` as neighbours; ``heads`` counts for tensors [B, L, heads · E] only."""  # noqa: D205, D209 - one sentence

    heads: int
    width: int
    interleaved: bool

    def cache_cotangents(
        self, x: Value, dy: Value, positions: Value | None, cache: Value
    ) -> tuple[Value, Value]:
        """Those of the cosines and sines, of the shape of ``cache``.

        ``positions`` [B, L] are the rows of the cache [P, pairs] that were read; without them the
        cache is [B, L, pairs].
        """
        (a, b), (da, db) = self._pairs(x), self._pairs(dy)
        d_cos, d_sin = a * da + b * db, a * db - b * da
        return _at_positions(d_cos, positions, cache), _at_positions(d_sin, positions, cache)

    def _pairs(self, x: Value) -> tuple[Value, Value]:
        """The two elements of all pairs, each [B, heads, L, pairs]."""
        op = x.op
        x = by_heads(x, self.heads) if x.rank == _SEQUENCE else x
        turning = cut_along(x, 3, 0, self.width or x.shape[3])
        *shape, width = turning.shape
        split = (width // 2, 2) if self.interleaved else (2, width // 2)
        pairs = op.Reshape(turning, op.integers(*shape, *split))
        axis = _PAIR_AXIS if self.interleaved else _PAIR_AXIS - 1
        first, second = (op.constant(np.array(half, dtype=np.int64)) for half in (0, 1))
        return op.Gather(pairs, first, axis=axis), op.Gather(pairs, second, axis=axis)


def _at_positions(angles: Value, positions: Value | None, cache: Value) -> Value:
    """[B, heads, L, pairs] summed over the heads, and into the rows of a cache that were read."""
    op = angles.op
    summed = op.ReduceSum(angles, op.integers(1), keepdims=0)
    if positions is None:
        return summed
    rows = op.Unsqueeze(positions, op.integers(-1))
    return op.ScatterND(op.zeros(cache.shape, cache.elem_type), rows, summed, reduction="add")
