"""Replace an If by the nodes of its branch, and a loop by the nodes of its iterations.

The condition and the number of iterations must follow from constants and shapes. Each iteration is
folded before the next is written, because its number may select elements and its condition may end
the Loop (see ``folding``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from onnxstep.graphs.nodes import constants, copied, live_nodes, node_attributes, subgraphs
from onnxstep.graphs.sequences import expanded, parts
from onnxstep.graphs.tensors import static_shape

# Limit for all loops of a graph together; gradients of more take minutes to build.
MAX_UNROLLED_NODES = 16_384
_BYTES_AS_A_NODE = 4096
Fold = Callable[[Iterable[onnx.NodeProto]], list[onnx.NodeProto]]


def branch_nodes(node: onnx.NodeProto, condition: bool, number: int) -> Iterator[onnx.NodeProto]:
    """The nodes of the branch that an If takes; they compute the If's outputs.

    ``number`` becomes a suffix of the branch's values, so that values of different branches have
    different names. Values of the surrounding graph keep theirs.
    """
    name_of_branch = "then_branch" if condition else "else_branch"
    [branch] = (attribute.g for attribute in node.attribute if attribute.name == name_of_branch)
    local = [tensor.name for tensor in branch.initializer]
    local += [name for child in branch.node for name in child.output if name]
    names = {name: f"{name}/branch_{number}" for name in local}
    for tensor in branch.initializer:
        yield helper.make_node("Constant", [], [names[tensor.name]], value=tensor)
    for child in branch.node:
        yield _renamed(child, names)
    for inner, outer in zip(branch.output, node.output, strict=False):
        if outer:
            yield helper.make_node("Identity", [names.get(inner.name, inner.name)], [outer])


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    copy = copied(node)
    _rename(copy, names)
    return copy


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename values of a node and of its nested graphs, which may not redefine outer names."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for graph in subgraphs(node):
        for child in graph.node:
            _rename(child, names)
        for value in graph.output:
            value.name = names.get(value.name, value.name)


class Loop:
    """A Loop or Scan that is replaced by nodes; ``tag`` makes the names of its values unique."""

    def __init__(self, node: onnx.NodeProto, tag: str) -> None:
        self._node, self._tag, self._given = node, tag, node_attributes(node)
        self._body: onnx.GraphProto = self._given["body"]
        self._is_scan = node.op_type == "Scan"
        self._constants = constants(self._body)
        self._steps = [n for n in self._body.node if self._constants.keys().isdisjoint(n.output)]
        carried = len(node.input) - self._given.get("num_scan_inputs", 0)
        self._scanned = node.input[carried:]
        # A Loop's condition is its first state.
        self._states = list(node.input[not self._is_scan : carried])
        self._yielded: list[list[str]] = []
        self.size = 1 + sum(1 + n.ByteSize() // _BYTES_AS_A_NODE for n in self._steps)

    def unrolled(
        self,
        types: Mapping[str, onnx.TypeProto],
        arrays: Mapping[str, NDArray[Any]],
        fold: Fold,
        has_room: Callable[[int], bool],
    ) -> list[onnx.NodeProto] | None:
        """The nodes of all iterations; None if their number is unknown, zero or too large.

        ``types`` and ``arrays`` are the known types and constant values by name; ``fold`` folds
        nodes and adds their results to both. ``has_room`` is called with the number of nodes of
        each iteration, and returns False if the limit is reached.
        """
        most = self._most(types, arrays)
        if most is None or (self._is_scan and most > MAX_UNROLLED_NODES):
            return None
        nodes = fold(self._begin(most))
        for trip in itertools.count():
            goes_on = 1 if self._is_scan else _number(arrays.get(self._states[0]))
            if trip == most or goes_on == 0:
                break
            if goes_on is None or not has_room(self.size):
                return None
            nodes += fold(self._iteration(trip))
        if not self._yielded:
            return None
        nodes += fold(self._end())
        return live_nodes(nodes, filter(None, self._node.output))

    def _most(
        self, types: Mapping[str, onnx.TypeProto], arrays: Mapping[str, NDArray[Any]]
    ) -> int | None:
        """The most iterations; -1 if only the condition ends them; None if unknown."""
        if not self._is_scan:
            if not self._node.input[0]:
                return -1
            most = _number(arrays.get(self._node.input[0]))
            return None if most is None else max(most, 0)
        shape = static_shape(types.get(self._scanned[0]))
        return shape[self._place("scan_input_axes", 0)] if shape else None

    def _place(self, attribute: str, number: int) -> int:
        """Axis or direction of a scanned value; by default 0, for the first axis and forward."""
        index = self._given.get(attribute)
        return int(index[number]) if index else 0

    def _unique_name(self, name: str, part: object = "") -> str:
        return f"{name}/{self._tag}{part}"

    def _begin(self, most: int) -> Iterator[onnx.NodeProto]:
        """Yield nodes for the values that iterations share: constants and slices of inputs."""
        for name, array in self._constants.items():
            if isinstance(array, onnx.TensorProto):
                yield helper.make_node("Constant", [], [self._unique_name(name)], value=array)
            else:
                yield _renamed(array, {name: self._unique_name(name)})
        if not self._is_scan and not self._states[0]:
            self._states[0] = self._unique_name("condition")
            yield _constant(self._states[0], np.array(True))
        for number, name in enumerate(self._scanned):
            names = [self._unique_name(f"{name}_{number}", f"_{trip}") for trip in range(most)]
            if self._place("scan_input_directions", number):
                names.reverse()
            axis = self._place("scan_input_axes", number)
            whole = self._unique_name(f"{name}_{number}")
            yield from parts(name, axis, [1] * most, names, whole, drops=True)

    def _iteration(self, trip: int) -> Iterator[onnx.NodeProto]:
        inputs = [value.name for value in self._body.input]
        arguments = [self._unique_name(f"{n}_{i}", f"_{trip}") for i, n in enumerate(self._scanned)]
        if self._is_scan:
            arguments = [*self._states, *arguments]
        else:
            count = np.array(trip, np.int64)
            arguments = [self._unique_name("trip", f"_{trip}"), *self._states]
            is_vector = len(self._body.input[0].type.tensor_type.shape.dim)
            yield _constant(arguments[0], count.reshape([1] * is_vector))
        names = {name: self._unique_name(name) for name in self._constants}
        names |= dict(zip(inputs, arguments, strict=True))
        for node in self._steps:
            names |= {name: self._unique_name(name, f"_{trip}") for name in node.output if name}
            yield _renamed(node, names)
        yielded = [names.get(value.name, value.name) for value in self._body.output]
        self._states = yielded[: len(self._states)]
        self._yielded.append(yielded[len(self._states) :])

    def _end(self) -> Iterator[onnx.NodeProto]:
        """Yield nodes for the loop's outputs: its last states, and its joined iteration results."""
        states = self._states if self._is_scan else self._states[1:]
        for inner, outer in zip(states, self._node.output, strict=False):
            if outer:
                yield helper.make_node("Identity", [inner], [outer])
        rows = zip(*self._yielded, strict=True)
        pairs = zip(rows, self._node.output[len(states) :], strict=False)
        for number, (row, outer) in enumerate(pairs):
            if not outer:
                continue
            axis = self._place("scan_output_axes", number)
            names = [self._unique_name(f"{outer}_part", f"_{trip}") for trip in range(len(row))]
            yield from expanded(list(row), axis, names)
            if self._place("scan_output_directions", number):
                names.reverse()
            yield helper.make_node("Concat", names, [outer], axis=axis)


def _number(array: NDArray[Any] | None) -> int | None:
    return None if array is None or array.size != 1 else int(array.item())


def _constant(name: str, array: NDArray[Any]) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
