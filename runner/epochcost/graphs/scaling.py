"""The shapes of a graph at any batch size, from the graph built at two.

Building a graph costs seconds where a model is large; its sizes grow along a line with the batch,
dimension by dimension. What is counted with the shapes is known in ``counting``.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from epochcost.graphs.counting import Shapes, static_shapes


class Interpolation:
    """One graph at two batch sizes, the smaller first.

    Where the two have other nodes, or a dimension does not lie on a line of whole numbers, nothing
    can be said of other batch sizes: ``shapes`` answers None.
    """

    def __init__(
        self, small: onnx.ModelProto, small_batch: int, large: onnx.ModelProto, large_batch: int
    ) -> None:
        self._batches = small_batch, large_batch
        self._ends = static_shapes(small), static_shapes(large)
        self._alike = _wiring(small) == _wiring(large)

    def shapes(self, batch: int) -> Shapes | None:
        """The shape of every tensor at a batch size; None where only a build can tell."""
        if batch in self._batches:
            return self._ends[self._batches.index(batch)]
        if not self._alike:
            return None
        small, large = self._ends
        found = {name: self._between(shape, large[name], batch) for name, shape in small.items()}
        known = {name: shape for name, shape in found.items() if shape is not None}
        return known if len(known) == len(found) else None

    def _between(
        self, small: tuple[int, ...], large: tuple[int, ...], batch: int
    ) -> tuple[int, ...] | None:
        if small == large:
            return small
        low, high = self._batches
        grown = [(b - a) * (batch - low) for a, b in zip(small, large, strict=True)]
        if any(growth % (high - low) for growth in grown):
            return None
        return tuple(a + growth // (high - low) for a, growth in zip(small, grown, strict=True))


def _wiring(model: onnx.ModelProto) -> list[tuple[str, Iterable[str], Iterable[str]]]:
    """What feeds what: constants and attributes apart, in which sizes may stand."""
    return [(node.op_type, tuple(node.input), tuple(node.output)) for node in model.graph.node]
