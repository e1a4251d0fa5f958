"""The arena from which ONNX Runtime's CPU provider takes memory, played through without any memory.

Owns what becomes of a sequence of requests: regions, chunks, and how much of them is ever touched.
Which requests a graph makes is left to ``peak_memory``.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

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
