"""The memory that the intermediate tensors of a run take of ONNX Runtime's CPU provider.

Played through node by node: what is asked of the arena, what takes the place of an operand, and
when it is given back; a product of matrices also reads transposed and scales, so that transposes
and factors before and after it are never stored. ``Arena`` plays through, without any memory, what
becomes of the requests: regions, chunks, and how much of them is ever touched. The order of the
nodes comes from ``execution_plan``; weights, inputs and outputs are counted in
``execute.sizing``.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import onnx

from onnxstep.errors import ModelError
from onnxstep.graphs.counting import Shapes, static_shapes
from onnxstep.graphs.execution_plan import ExecutionPlan, execution_plan
from onnxstep.graphs.nodes import VIEWS, reads
from onnxstep.graphs.tensors import item_bytes

# What ONNX Runtime 1.31's kernels write over an operand of the same size that nobody reads again,
# as the memory in its profiles shows; the others, sums and products too, take new memory.
_IN_PLACE = frozenset(
    {
        "Cast", "Celu", "Clip", "Elu", "HardSigmoid", "LeakyRelu", "LogSoftmax", "Not", "Relu",
        "ScatterElements", "Selu", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh",
        "ThresholdedRelu",
    }
)  # fmt: skip
# The first run finds the arena without regions, later ones all of them with free chunks, of which
# they may take others.
_RUNS = 2


def peak_activation_bytes(model: onnx.ModelProto, shapes: Shapes | None = None) -> int:
    """What the arena holds for good after runs of the model, in bytes.

    Graph inputs, outputs, initializers and folded constants are not counted, nor what a kernel
    takes and gives back by itself, which changed none of 99 measured steps. ``shapes`` replaces
    those that the model declares. Raises ModelError where a shape is not static, and for a value
    that is no tensor.
    """
    buffers = _buffers(model, static_shapes(model) if shapes is None else shapes)
    arena = Arena()
    for _ in range(_RUNS):
        buffers.play(arena)
    return arena.touched_bytes


def folded_constant_bytes(model: onnx.ModelProto, shapes: Shapes | None = None) -> int:
    """What a session holds of values that follow from initializers alone, in bytes."""
    known = static_shapes(model) if shapes is None else shapes
    run, widths = execution_plan(model), item_bytes(model)
    stored = {tensor.name for tensor in model.graph.initializer}
    needed = {name for node in run.nodes for name in reads(node)}
    folded = (run.constants & needed) - stored
    return sum(math.prod(known[name]) * widths[name] for name in folded if name in known)


@dataclass(frozen=True)
class _Buffers:
    """By step, the bytes of each buffer that it takes, and the buffers that are then free."""

    taken: Sequence[Mapping[str, int]]
    done: Sequence[Sequence[str]]

    def play(self, arena: Arena) -> None:
        """Ask an arena for all that one run asks for."""
        places: dict[str, int] = {}
        for taken, done in zip(self.taken, self.done, strict=True):
            places.update({name: arena.take(size) for name, size in taken.items()})
            for name in done:
                arena.give_back(places.pop(name))


def _buffers(model: onnx.ModelProto, shapes: Shapes) -> _Buffers:
    widths = item_bytes(model)
    run = execution_plan(model)
    outside = {value.name for value in (*model.graph.input, *model.graph.output)} | run.constants

    def size(name: str) -> int:
        if name not in widths or name not in shapes:
            raise ModelError(f"value {name!r}: expected a tensor to count with")
        return math.prod(shapes[name]) * widths[name]

    sharing = _Sharing(run, size, outside, fused_operands(run, shapes))
    taken = [sharing.taken(step, node) for step, node in enumerate(run.nodes)]
    done: list[list[str]] = [[] for _ in run.nodes]
    for buffer, step in sharing.end.items():
        done[step].append(buffer)
    return _Buffers(taken, done)


class _Sharing:
    """Which values share a buffer, step by step; ``end`` is the last step that needs a buffer."""

    def __init__(
        self, run: ExecutionPlan, size: Callable[[str], int], outside: Set[str], absorbed: Set[str]
    ) -> None:
        self.end: dict[str, int] = {}
        self._size, self._outside = size, outside
        self._last = {name: step for step, node in enumerate(run.nodes) for name in reads(node)}
        self._absorbed = absorbed
        self._buffer: dict[str, str] = {}

    def taken(self, step: int, node: onnx.NodeProto) -> dict[str, int]:
        """The buffers that the node's outputs need anew, with their bytes."""
        found = {}
        for name in filter(None, node.output):
            if name in self._outside:
                continue
            buffer = self._shared(step, node, name)
            if buffer is None and self._is_view(node):
                continue  # of a graph input or a constant
            if buffer is None:
                buffer, found[name] = name, self._size(name)
            self._buffer[name] = buffer
            self.end[buffer] = max(self.end.get(buffer, step), self._last.get(name, step))
        return found

    def _shared(self, step: int, node: onnx.NodeProto, name: str) -> str | None:
        """The operand's buffer that an output shows or takes over; None where there is none."""
        buffer = self._buffer.get(node.input[0]) if node.input else None
        if buffer is None or self._is_view(node):
            return buffer
        is_free = self.end[buffer] == step and node.op_type in _IN_PLACE
        fits = is_free and name == node.output[0] and self._size(buffer) == self._size(name)
        return buffer if fits else None

    def _is_view(self, node: onnx.NodeProto) -> bool:
        return node.op_type in VIEWS or node.output[0] in self._absorbed


_SCALABLE = frozenset({"MatMul", "FusedMatMul"})
_TRANSPOSABLE = _SCALABLE | {"Gemm"}


def fused_operands(run: ExecutionPlan, shapes: Shapes) -> Set[str]:
    """Values that a product takes the place of: transposed or scaled operands, scaled results."""
    swapped = {node.output[0] for node in run.nodes if _swaps_last_axes(node)}
    scaled = dict(_scaled(run, shapes))
    products = {name for node in run.nodes if node.op_type in _SCALABLE for name in node.output}
    readers = Counter(name for node in run.nodes for name in reads(node))
    results = {y for y, x in scaled.items() if x in products and readers[x] == 1}
    operands = _read_by(_TRANSPOSABLE, run.nodes, swapped)
    return operands | results | _read_by(_SCALABLE, run.nodes, scaled.keys() - results)


def _read_by(kinds: Set[str], nodes: Sequence[onnx.NodeProto], names: Set[str]) -> Set[str]:
    """Those of the values that only operators of these kinds read."""
    elsewhere = {name for node in nodes if node.op_type not in kinds for name in reads(node)}
    return names - elsewhere


def _scaled(run: ExecutionPlan, shapes: Shapes) -> Iterator[tuple[str, str]]:
    """By name of a value times or over a constant number, that value."""
    for node in run.nodes:
        if node.op_type in {"Mul", "Div"}:
            x, factor = node.input
            if node.op_type == "Mul" and x in run.constants:
                x, factor = factor, x
            if factor in run.constants and math.prod(shapes.get(factor, (0,))) == 1:
                yield node.output[0], x


def _swaps_last_axes(node: onnx.NodeProto) -> bool:
    if node.op_type != "Transpose":
        return False
    perm = next((list(entry.ints) for entry in node.attribute if entry.name == "perm"), [1, 0])
    rank = len(perm)
    return rank > 1 and perm == [*range(rank - 2), rank - 1, rank - 2]


# BFCArena's constants (onnxruntime/core/framework/bfc_arena.h and allocator.h): requests are
# rounded up to 256 bytes; the first region has 1 MiB, and regions double up to 1 GiB; a free chunk
# is split where it is twice the request or leaves 128 MiB, and given whole otherwise; of free ones
# of one size that at the lowest address is taken. Pages are those of x86 and most others.
_ROUNDING = 256
_PAGE = 4096
_FIRST_REGION = 2**20
_LARGEST_REGION = 2**30
_LARGEST_WASTE = 128 * 2**20


@dataclass
class _Chunk:
    size: int
    previous: int | None
    is_free: bool = True


@dataclass
class Arena:
    """A best-fit allocator with coalescing that grows by regions and gives none back.

    The system backs a page when it is first written: ``touched_bytes``, the pages of all requests
    there ever were, is what the process holds of it. Addresses are counted down from 0, since Linux
    maps each region below those before it (mm/mmap.c, top down), so that of equal chunks the one in
    the latest region is taken.
    """

    _chunks: dict[int, _Chunk] = field(default_factory=dict)
    _free: list[tuple[int, int]] = field(default_factory=list)
    # The first of the pages of a request and the one behind its last.
    _touched: set[tuple[int, int]] = field(default_factory=set)
    _lowest: int = 0
    _next_region: int = _FIRST_REGION

    @property
    def touched_bytes(self) -> int:
        """What was ever written to, in bytes."""
        pages, reached = 0, self._lowest // _PAGE
        for first, end in sorted(self._touched):
            begin = max(first, reached)
            if end > begin:
                pages, reached = pages + end - begin, end
        return _PAGE * pages

    def take(self, size: int) -> int:
        """The address of room for ``size`` bytes: the smallest free chunk that holds them, of a new
        region if there is none."""  # noqa: D205, D209 - one sentence
        size = max(1, -(-size // _ROUNDING)) * _ROUNDING
        index = bisect.bisect_left(self._free, (size, self._lowest))
        if index == len(self._free):
            self._grow(size)
            index = bisect.bisect_left(self._free, (size, self._lowest))
        found, place = self._free.pop(index)
        if found >= 2 * size or found - size >= _LARGEST_WASTE:
            self._split(place, size)
        self._chunks[place].is_free = False
        self._touched.add((place // _PAGE, -(-(place + size) // _PAGE)))
        return place

    def give_back(self, place: int) -> None:
        """Free a chunk and join it to free neighbours."""
        self._chunks[place].is_free = True
        self._join_next(place)
        previous = self._chunks[place].previous
        if previous is not None and self._chunks[previous].is_free:
            place = previous
            self._forget(place)
            self._join_next(place, listed=False)
        bisect.insort(self._free, (self._chunks[place].size, place))

    def _grow(self, size: int) -> None:
        doubles = self._next_region >= size
        while self._next_region < min(size, _LARGEST_REGION):
            self._next_region *= 2
        region = max(size, self._next_region)
        if doubles and self._next_region < _LARGEST_REGION:
            self._next_region *= 2
        # A page of the allocator's own lies between two regions, so that they are never joined.
        self._lowest = (self._lowest - _PAGE - region) // _PAGE * _PAGE
        self._chunks[self._lowest] = _Chunk(region, None)
        bisect.insort(self._free, (region, self._lowest))

    def _split(self, place: int, size: int) -> None:
        whole, rest = self._chunks[place], place + size
        self._chunks[rest] = _Chunk(whole.size - size, place)
        following = self._chunks.get(place + whole.size)
        if following is not None:
            following.previous = rest
        whole.size = size
        bisect.insort(self._free, (self._chunks[rest].size, rest))

    def _join_next(self, place: int, *, listed: bool = True) -> None:
        """Take the chunk behind into this one if it is free; ``listed``: as the list of free ones
        has it."""  # noqa: D205, D209 - one sentence
        chunk = self._chunks[place]
        behind = place + chunk.size
        other = self._chunks.get(behind)
        if other is None or not other.is_free:
            return
        if listed:
            self._forget(behind)
        del self._chunks[behind]
        chunk.size += other.size
        following = self._chunks.get(place + chunk.size)
        if following is not None:
            following.previous = place

    def _forget(self, place: int) -> None:
        del self._free[bisect.bisect_left(self._free, (self._chunks[place].size, place))]
