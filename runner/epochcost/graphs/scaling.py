"""The shapes of a graph at any batch size, from the graph built at two.

Building a graph costs seconds where a model is large; its sizes grow along a line with the batch,
dimension by dimension. What is counted with the shapes is known in ``counting``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import onnx

from epochcost.graphs.counting import Shapes, static_shapes


class Interpolation:
    """One graph at two batch sizes, the smaller first; shapes are by the names of the larger.

    Where the two have other nodes, or a dimension does not lie on a line of whole numbers, nothing
    can be said of other batch sizes: ``shapes`` answers None.
    """

    def __init__(
        self, small: onnx.ModelProto, small_batch: int, large: onnx.ModelProto, large_batch: int
    ) -> None:
        self._batches = small_batch, large_batch
        self._models = small, large
        self._small, self._large = static_shapes(small), static_shapes(large)

    @functools.cached_property
    def _names(self) -> Mapping[str, str] | None:
        return _counterparts(*self._models, self._small)

    def shapes(self, batch: int) -> Shapes | None:
        """Every tensor of the larger graph at a batch size; None where only a build can tell."""
        if batch == self._batches[1]:
            return self._large
        if self._names is None:
            return None
        found: dict[str, tuple[int, ...]] = {}
        for name, large in self._large.items():
            shape = self._between(self._small[self._names.get(name, name)], large, batch)
            if shape is None:
                return None
            found[name] = shape
        return found

    def _between(
        self, small: tuple[int, ...], large: tuple[int, ...], batch: int
    ) -> tuple[int, ...] | None:
        if small == large:
            return small
        low, high = self._batches
        grown = [(b - a) * (batch - low) for a, b in zip(small, large, strict=False)]
        if len(small) != len(large) or any(growth % (high - low) for growth in grown):
            return None
        return tuple(a + growth // (high - low) for a, growth in zip(small, grown, strict=True))


def _counterparts(
    small: onnx.ModelProto, large: onnx.ModelProto, small_shapes: Shapes
) -> Mapping[str, str] | None:
    """By name in the larger graph, the tensor of the smaller one; None where nodes differ.

    Names may differ, since equal constants share one and which are equal depends on the batch.
    """
    if len(small.graph.node) != len(large.graph.node):
        return None
    names = {value.name: value.name for value in large.graph.input}
    made: set[str] = set(names)
    for one, other in zip(small.graph.node, large.graph.node, strict=True):
        if (one.op_type, len(one.input)) != (other.op_type, len(other.input)):
            return None
        for a, b in zip(one.input, other.input, strict=True):
            known = names.setdefault(b, a)
            if a != known and (b in made or small_shapes.get(a) != small_shapes.get(known)):
                return None
        names.update(zip(other.output, one.output, strict=False))
        made.update(other.output)
    return names if all(name in small_shapes for name in filter(None, names.values())) else None
