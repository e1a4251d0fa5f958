"""The arena as ONNX Runtime's: rounded requests, best fit, splits, joins, doubling regions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from onnxstep.graphs.peak_memory import Arena

MIB = 2**20


def test_requests_are_rounded_and_split_from_the_first_region() -> None:
    """A byte takes 256, the next chunk lies right behind it, and both touch one page."""
    arena = Arena()
    first = arena.take(1)
    assert arena.take(257) == first + 256
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
    assert arena.take(256) == first + 1024 + 256


def test_of_equal_chunks_the_latest_region_s_is_taken() -> None:
    """Regions come to lie below those before them, and the lowest address is taken."""
    arena = Arena()
    early, late = arena.take(5 * MIB), arena.take(5 * MIB)
    assert late < early
    arena.give_back(late)
    arena.give_back(early)
    assert [arena.take(5 * MIB), arena.take(5 * MIB)] == [late, early]
    assert arena.touched_bytes == 10 * MIB


def test_regions_are_never_joined() -> None:
    """What two neighbours have together holds no request."""
    arena = Arena()
    places = [arena.take(size * MIB) for size in (1, 2)]
    for place in places:
        arena.give_back(place)
    assert arena.take(3 * MIB) not in places


def test_regions_double() -> None:
    """What finds no room gets a region of a power of two, of which only what is used is touched."""
    arena = Arena()
    first, second, third = (arena.take(size * MIB) for size in (5, 5, 9))
    assert second <= first - 8 * MIB
    assert third <= second - 16 * MIB
    assert arena.touched_bytes == 19 * MIB


@given(st.lists(st.tuples(st.integers(1, 3 * MIB), st.booleans()), max_size=60))
def test_chunks_never_overlap(requests: list[tuple[int, bool]]) -> None:
    """Whatever is taken and given back, live chunks are apart and the touched bytes cover them."""
    arena, live = Arena(), dict[int, int]()
    for size, gives_back in requests:
        if gives_back and live:
            place = next(iter(live))
            del live[place]
            arena.give_back(place)
        live[arena.take(size)] = size
    for (place, size), (following, _) in pairwise(sorted(live.items())):
        assert place + size <= following
    assert sum(live.values()) <= arena.touched_bytes


@given(st.lists(st.tuples(st.integers(1, 3 * MIB), st.booleans()), max_size=60))
def test_a_page_is_touched_once(requests: list[tuple[int, bool]]) -> None:
    """However often requests lie over the same pages, those count as many as there are."""
    arena, pages, live = Arena(), set[int](), list[int]()
    for size, gives_back in requests:
        if gives_back and live:
            arena.give_back(live.pop(0))
        place = arena.take(size)
        live.append(place)
        whole = -(-size // 256) * 256
        pages |= set(range(place // 4096, -(-(place + whole) // 4096)))
    assert arena.touched_bytes == 4096 * len(pages)


def test_a_request_of_an_exabyte_is_as_quick_as_another() -> None:
    """Graphs that nobody can run are played through too, before they are refused."""
    arena = Arena()
    arena.take(2**60)
    assert arena.touched_bytes == 2**60
