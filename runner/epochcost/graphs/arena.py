"""The arena from which ONNX Runtime's CPU provider takes memory, played through without any memory.

Owns what becomes of a sequence of requests: regions, chunks, and how much of them is ever touched.
Which requests a graph makes is left to ``peak_memory``.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

# BFCArena's constants (onnxruntime/core/framework/bfc_arena.h and allocator.h): requests are
# rounded up to 256 bytes; the first region has 1 MiB, and regions double up to 1 GiB; a free chunk
# is split where it is twice the request or leaves 128 MiB, and given whole otherwise. Pages are
# those of x86 and most others.
_ROUNDING = 256
_PAGE = 4096
_FIRST_REGION = 2**20
_LARGEST_REGION = 2**30
_LARGEST_WASTE = 128 * 2**20


@dataclass(frozen=True, order=True)
class Place:
    """Where a chunk begins: its region, and the bytes before it."""

    region: int
    offset: int


@dataclass
class _Chunk:
    size: int
    previous: int | None
    is_free: bool = True


@dataclass
class Arena:
    """A best-fit allocator with coalescing that grows by regions and gives none back.

    The system backs a page when it is first written: ``touched_bytes``, the pages of all requests
    there ever were, is what the process holds of it.
    """

    _regions: list[dict[int, _Chunk]] = field(default_factory=list)
    _free: list[tuple[int, Place]] = field(default_factory=list)
    # By region, the first of the pages of a request and the one behind its last.
    _touched: set[tuple[int, int, int]] = field(default_factory=set)
    _next_region: int = _FIRST_REGION

    @property
    def touched_bytes(self) -> int:
        """What was ever written to, in bytes."""
        pages, reached = 0, (0, 0)
        for region, first, end in sorted(self._touched):
            begin = max((region, first), reached)
            if (region, end) > begin:
                pages, reached = pages + end - begin[1], (region, end)
        return _PAGE * pages

    def take(self, size: int) -> Place:
        """Room for ``size`` bytes: the smallest free chunk that holds them, of a new region if
        there is none."""  # noqa: D205, D209 - one sentence
        size = max(1, -(-size // _ROUNDING)) * _ROUNDING
        index = bisect.bisect_left(self._free, (size, Place(-1, -1)))
        if index == len(self._free):
            self._grow(size)
            index = bisect.bisect_left(self._free, (size, Place(-1, -1)))
        found, place = self._free.pop(index)
        if found >= 2 * size or found - size >= _LARGEST_WASTE:
            self._split(place, size)
        self._regions[place.region][place.offset].is_free = False
        first, end = place.offset // _PAGE, -(-(place.offset + size) // _PAGE)
        self._touched.add((place.region, first, end))
        return place

    def give_back(self, place: Place) -> None:
        """Free a chunk and join it to free neighbours."""
        chunks, offset = self._regions[place.region], place.offset
        chunks[offset].is_free = True
        self._join_next(place)
        previous = chunks[offset].previous
        if previous is not None and chunks[previous].is_free:
            place = Place(place.region, previous)
            self._forget(place)
            self._join_next(place, listed=False)
        bisect.insort(self._free, (chunks[place.offset].size, place))

    def _grow(self, size: int) -> None:
        doubles = self._next_region >= size
        while self._next_region < min(size, _LARGEST_REGION):
            self._next_region *= 2
        region = max(size, self._next_region)
        if doubles and self._next_region < _LARGEST_REGION:
            self._next_region *= 2
        place = Place(len(self._regions), 0)
        self._regions.append({0: _Chunk(region, None)})
        bisect.insort(self._free, (region, place))

    def _split(self, place: Place, size: int) -> None:
        chunks = self._regions[place.region]
        whole = chunks[place.offset]
        rest = place.offset + size
        chunks[rest] = _Chunk(whole.size - size, place.offset)
        following = chunks.get(place.offset + whole.size)
        if following is not None:
            following.previous = rest
        whole.size = size
        bisect.insort(self._free, (chunks[rest].size, Place(place.region, rest)))

    def _join_next(self, place: Place, *, listed: bool = True) -> None:
        """Take the chunk behind into this one if it is free; ``listed``: as the list of free ones
        has it."""  # noqa: D205, D209 - one sentence
        chunks = self._regions[place.region]
        chunk = chunks[place.offset]
        behind = place.offset + chunk.size
        other = chunks.get(behind)
        if other is None or not other.is_free:
            return
        if listed:
            self._forget(Place(place.region, behind))
        del chunks[behind]
        chunk.size += other.size
        following = chunks.get(place.offset + chunk.size)
        if following is not None:
            following.previous = place.offset

    def _forget(self, place: Place) -> None:
        entry = (self._regions[place.region][place.offset].size, place)
        del self._free[bisect.bisect_left(self._free, entry)]
