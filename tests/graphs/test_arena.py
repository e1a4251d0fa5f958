"""The arena as ONNX Runtime's: rounded requests, best fit, splits, joins, doubling regions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from epochcost.graphs.arena import Arena, Place

MIB = 2**20


def test_requests_are_rounded_and_split_from_the_first_region() -> None:
    """A byte takes 256, the next chunk lies right behind it, and both touch one page."""
    arena = Arena()
    assert arena.take(1) == Place(0, 0)
    assert arena.take(257) == Place(0, 256)
    assert arena.touched_bytes == 4096


def test_what_was_given_back_is_joined_and_taken_again() -> None:
    """Two free neighbours hold a request of their sum, and nothing new is touched."""
    arena = Arena()
    places = [arena.take(4096) for _ in range(3)]
    for place in places[:2]:
        arena.give_back(place)
    assert arena.take(8192) == places[0]
    assert arena.touched_bytes == 3 * 4096


def test_the_smallest_chunk_that_fits_is_taken() -> None:
    """Of two holes the narrower one."""
    arena = Arena()
    wide, _, narrow, _ = (arena.take(size) for size in (4096, 256, 1024, 256))
    arena.give_back(wide)
    arena.give_back(narrow)
    assert arena.take(512) == narrow


def test_a_chunk_less_than_twice_a_request_is_given_whole() -> None:
    """The rest is lost to others while the request lasts."""
    arena = Arena()
    first = arena.take(1024)
    arena.take(256)
    arena.give_back(first)
    assert arena.take(768) == first
    assert arena.take(256).offset == 1024 + 256


def test_regions_double() -> None:
    """What finds no room gets a region of a power of two, of which only what is used is touched."""
    arena = Arena()
    assert arena.take(5 * MIB) == Place(0, 0)
    assert arena.take(5 * MIB) == Place(1, 0)
    assert arena.take(9 * MIB) == Place(2, 0)
    assert arena.touched_bytes == 19 * MIB


@given(st.lists(st.tuples(st.integers(1, 3 * MIB), st.booleans()), max_size=60))
def test_chunks_never_overlap(requests: list[tuple[int, bool]]) -> None:
    """Whatever is taken and given back, live chunks are apart and the touched bytes cover them."""
    arena, live = Arena(), dict[Place, int]()
    for size, gives_back in requests:
        if gives_back and live:
            place = next(iter(live))
            del live[place]
            arena.give_back(place)
        live[arena.take(size)] = size
    ends = sorted((p.region, p.offset, p.offset + size) for p, size in live.items())
    for (region, _, end), (other, start, _) in pairwise(ends):
        assert region != other or end <= start
    assert sum(live.values()) <= arena.touched_bytes


@given(st.lists(st.tuples(st.integers(1, 3 * MIB), st.booleans()), max_size=60))
def test_a_page_is_touched_once(requests: list[tuple[int, bool]]) -> None:
    """However often requests lie over the same pages, those count as many as there are."""
    arena, pages, live = Arena(), set[tuple[int, int]](), list[Place]()
    for size, gives_back in requests:
        if gives_back and live:
            arena.give_back(live.pop(0))
        place = arena.take(size)
        live.append(place)
        whole = -(-size // 256) * 256
        touched = range(place.offset // 4096, -(-(place.offset + whole) // 4096))
        pages |= {(place.region, page) for page in touched}
    assert arena.touched_bytes == 4096 * len(pages)


def test_a_request_of_an_exabyte_is_as_quick_as_another() -> None:
    """Graphs that nobody can run are played through too, before they are refused."""
    arena = Arena()
    arena.take(2**60)
    assert arena.touched_bytes == 2**60
