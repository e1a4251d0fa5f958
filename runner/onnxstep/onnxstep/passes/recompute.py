"""Rematerialisation: recompute segments of the forward pass in the backward pass, to save memory.

Every segment except the last stores only the values that later segments read. Its other values are
recomputed before use, without new random numbers or updates of running statistics.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import onnx
from onnx import TensorProto

from onnxstep.axes import late, zero_after
from onnxstep.builder import Builder, Value
from onnxstep.graphs.nodes import RANDOM, VIEWS, copied, reads
from onnxstep.graphs.parameters import origins

# ONNX Runtime cannot reshape 4-bit tensors, so ``late`` cannot delay them. Their scales are delayed
# instead, which also delays the recomputed weights.
_UNRESHAPED = (TensorProto.INT4, TensorProto.UINT4)
Rematerialisation = Literal["none", "sqrt"]

# Values smaller than their operands by this factor are kept, such as means, variances and maxima.
_SMALLER = 32


def recompute_segments(op: Builder, forward_nodes: int) -> None:
    """Let the backward nodes read recomputed values instead of stored values.

    The first ``forward_nodes`` nodes are the forward pass. If no cut saves memory, nothing changes.
    """
    forward, backward = op.nodes[:forward_nodes], op.nodes[forward_nodes:]
    passed = _ForwardPass(op, forward, backward)
    cuts = cheapest_cuts(passed.alive, passed.inside)
    if not cuts:
        return
    op.nodes = forward
    again = _LazyRecomputation(op, passed, cuts)
    for place, node in enumerate(backward):
        names = [again.stored_or_recomputed_name(name, place) for name in node.input]
        if names != list(node.input):
            node.input[:] = names
        op.nodes.append(node)


class _ForwardPass:
    def __init__(
        self, op: Builder, nodes: Sequence[onnx.NodeProto], backward: Sequence[onnx.NodeProto]
    ) -> None:
        self.op, self.nodes, self.backward = op, nodes, backward
        self.maker = {name: p for p, node in enumerate(nodes) for name in node.output if name}
        captured = {
            name for node in (*nodes, *backward) for name in set(reads(node)) - set(node.input)
        }
        self.kept = captured | set(self._not_made_again())
        self._root = origins(nodes, VIEWS)
        read = {name for node in backward for name in node.input} & self.maker.keys()
        self.recomputed = read - self.kept
        self.inside = self._recomputed_bytes_per_node()
        self.alive = self._live_bytes_before_nodes()

    def _not_made_again(self) -> Iterator[str]:
        for node in self.nodes:
            if node.op_type == "Dropout":
                yield from node.output[_recomputable_dropout_ratio(self.op, node) is not None :]
            elif node.op_type in RANDOM:
                yield from node.output
            else:
                largest = max((self._bytes(name) for name in node.input if name), default=0)
                yield from (n for n in node.output if n and self._bytes(n) * _SMALLER <= largest)

    def _bytes(self, name: str) -> int:
        value = self.op.values.get(name)
        return 0 if value is None else value.size * value.dtype.itemsize

    def _recomputed_bytes_per_node(self) -> list[int]:
        roots = {self._root.get(name, name) for name in self.recomputed}
        sizes = [0] * len(self.nodes)
        for name in roots & self.maker.keys():
            sizes[self.maker[name]] += self._bytes(name)
        return sizes

    def _live_bytes_before_nodes(self) -> list[int]:
        """For each node, the bytes of earlier nodes' outputs that this or a later node reads."""
        last: dict[str, int] = {}
        for place, node in enumerate(self.nodes):
            for name in node.input:
                last[self._root.get(name, name)] = place
        change = [0] * (len(self.nodes) + 1)
        for name, place in last.items():
            if name in self.maker and place > self.maker[name]:
                change[self.maker[name] + 1] += self._bytes(name)
                change[place + 1] -= self._bytes(name)
        return list(itertools.accumulate(change[:-1]))


def _recomputable_dropout_ratio(op: Builder, node: onnx.NodeProto) -> float | None:
    ratio = op.array_of(op.values.get(node.input[1])) if len(node.input) > 1 else None
    has_mask = len(node.output) > 1 and bool(node.output[1])
    return float(ratio) if ratio is not None and has_mask else None


def _repeat_dropout(op: Builder, node: onnx.NodeProto, input_name: str) -> Value:
    x, mask = op.values[input_name], op.values[node.output[1]]
    ratio = _recomputable_dropout_ratio(op, node)
    assert ratio is not None, "kept otherwise"
    return x * (op.Cast(mask, to=x.elem_type) * (1 / (1 - ratio)))


class _LazyRecomputation:
    def __init__(self, op: Builder, passed: _ForwardPass, cuts: Sequence[int]) -> None:
        self._op, self._passed, self._cuts = op, passed, cuts
        self._made: dict[str, str] = {}
        self._late: dict[tuple[int, str], str] = {}
        self._zeros: dict[int, Value] = {}
        self._trigger = _recomputation_triggers(passed)

    def stored_or_recomputed_name(self, name: str, backward_index: int) -> str:
        segment = self._segment(name)
        if name not in self._passed.recomputed or segment == len(self._cuts):
            return name
        trigger = self._trigger[backward_index]
        if segment not in self._zeros:
            if trigger is None:
                return name
            self._zeros[segment] = zero_after(self._op.values[trigger])
        return self._recompute_with_operands(name, segment)

    def _segment(self, name: str) -> int:
        maker = self._passed.maker.get(name)
        return len(self._cuts) if maker is None else bisect.bisect_right(self._cuts, maker)

    def _recompute_with_operands(self, target: str, segment: int) -> str:
        stack = [target]
        while stack:
            name = stack[-1]
            node = self._passed.nodes[self._passed.maker[name]]
            missing = [n for n in node.input if self._is_inside(n, segment) and n not in self._made]
            if name in self._made or not missing:
                stack.pop()
                if name not in self._made:
                    self._repeat(node, segment)
            else:
                stack += missing
        return self._made[target]

    def _is_inside(self, name: str, segment: int) -> bool:
        is_made_again = name in self._passed.maker and name not in self._passed.kept
        return is_made_again and self._segment(name) == segment

    def _repeat(self, node: onnx.NodeProto, segment: int) -> None:
        inputs = [self._made[n] if self._is_inside(n, segment) else n for n in node.input]
        inside = [a != b for a, b in zip(inputs, node.input, strict=True)]
        outside = [n for n in node.input if n in self._passed.maker]
        for place, name in enumerate(node.input):
            # Without a delayed input, the copy would equal the original node, and ONNX Runtime
            # would merge both.
            if name and not inside[place] and (name in outside or not (any(inside) or outside)):
                inputs[place] = self._after(name, segment)
        if node.op_type == "Dropout":
            results: Sequence[Value] = [_repeat_dropout(self._op, node, inputs[0])]
        else:
            results = self._copy(node, inputs)
        pairs = zip(filter(None, node.output), results, strict=False)
        self._made.update((old, new.name) for old, new in pairs if old not in self._passed.kept)

    def _copy(self, node: onnx.NodeProto, inputs: Sequence[str]) -> Sequence[Value]:
        copy = copied(node)
        copy.name = ""
        copy.input[:] = inputs
        copy.output[:] = [self._op.fresh(node.op_type) if name else "" for name in node.output]
        for old, new in zip(node.output, copy.output, strict=True):
            if old:
                self._op.values[new] = replace(self._op.values[old], name=new)
        return self._op.append(copy)

    def _after(self, name: str, segment: int) -> str:
        value = self._op.values[name]
        if not value.rank or value.elem_type in _UNRESHAPED:
            return name
        if (segment, name) not in self._late:
            self._late[segment, name] = late(value, self._zeros[segment]).name
        return self._late[segment, name]


def _recomputation_triggers(passed: _ForwardPass) -> list[str | None]:
    """For each backward node, the value after which recomputation for this node may start.

    It is the latest float output of earlier backward nodes that is still read, or None.
    """
    last = {name: p for p, node in enumerate(passed.backward) for name in node.input}
    triggers: list[str | None] = []
    newest: list[str] = []
    for place, node in enumerate(passed.backward):
        while newest and last.get(newest[-1], -1) < place:
            newest.pop()
        triggers.append(newest[-1] if newest else None)
        results = [passed.op.values[name] for name in node.output if name]
        newest += [value.name for value in results if value.is_float and value.size]
    return triggers


# The forward pass is divided into this many parts, and a cut is tried in each part.
_MOST_CUTS = 160
# The search tries several limits for the size of a segment, each larger by this factor.
_FINER = 1.2


def cheapest_cuts(alive: Sequence[int], inside: Sequence[int]) -> tuple[int, ...]:
    """Indices of the nodes before which to cut, in order; empty if no cut saves memory.

    A cut before node p stores ``alive[p]`` bytes. Node p writes ``inside[p]`` bytes that the
    backward pass reads. The cuts minimise the sum of ``alive`` over cuts, plus the largest sum of
    ``inside`` between cuts (Chen et al., "Training deep nets with sublinear memory cost", 2016).
    """
    before = [0, *itertools.accumulate(inside)]
    tried = _cheapest_cut_per_part(alive, before)
    best: tuple[int, ...] = ()
    best_bytes = before[-1]
    limit = max(inside, default=0)
    while 0 < limit < before[-1]:
        cuts = _cheapest_cuts_within_limit(limit, tried, alive, before)
        if cuts is not None:
            held_bytes = sum(alive[cut] for cut in cuts) + _largest(cuts, before)
            if held_bytes < best_bytes:
                best, best_bytes = cuts, held_bytes
        limit = math.ceil(limit * _FINER)
    return best


def _cheapest_cut_per_part(alive: Sequence[int], bytes_before: Sequence[int]) -> list[int]:
    narrowest: dict[int, int] = {}
    for place in range(1, len(alive)):
        part = bytes_before[place] * _MOST_CUTS // max(1, bytes_before[-1])
        if alive[place] <= alive[narrowest.get(part, place)]:
            narrowest[part] = place
    return sorted(narrowest.values())


def _cheapest_cuts_within_limit(
    limit_bytes: int, candidates: Sequence[int], alive: Sequence[int], bytes_before: Sequence[int]
) -> tuple[int, ...] | None:
    """Choose the cuts among ``candidates`` that store the fewest bytes and keep segments small.

    The nodes of a segment may write at most ``limit_bytes`` for the backward pass. All nodes before
    p write ``bytes_before[p]`` such bytes. Returns None if no choice keeps the limit.
    """
    ends = [0, *candidates, len(bytes_before) - 1]
    costs: list[float] = [0]
    previous = [0]
    for place in range(1, len(ends)):
        fewest = bytes_before[ends[place]] - limit_bytes
        near = [(costs[p], p) for p in range(place) if bytes_before[ends[p]] >= fewest]
        cost, source = min(near, default=(math.inf, -1))
        here = alive[ends[place]] if place < len(ends) - 1 else 0
        costs.append(cost + here)
        previous.append(source)
    if math.isinf(costs[-1]):
        return None
    cuts, place = [], previous[-1]
    while place > 0:
        cuts.append(ends[place])
        place = previous[place]
    return tuple(reversed(cuts))


def _largest(cuts: Sequence[int], before: Sequence[int]) -> int:
    ends = [0, *cuts, len(before) - 1]
    return max(before[b] - before[a] for a, b in itertools.pairwise(ends))
