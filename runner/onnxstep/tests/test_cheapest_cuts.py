"""``cheapest_cuts`` cuts the forward pass so that activation checkpointing needs least memory."""

from __future__ import annotations

import itertools

from onnxstep.passes.recompute import cheapest_cuts


def test_a_chain_is_cut_into_about_root_n_segments() -> None:
    """A chain of 64 equal layers gets 8 to 16 cuts, and less than a quarter of its uncut memory."""
    alive = [3 if place % 3 else 1 for place in range(192)]
    cuts = cheapest_cuts(alive, [1] * 192)
    assert 8 <= len(cuts) <= 16
    assert all(alive[cut] == 1 for cut in cuts)
    ends = [0, *cuts, 192]
    assert len(cuts) + max(b - a for a, b in itertools.pairwise(ends)) < 192 / 4


def test_cuts_avoid_what_is_wide() -> None:
    """A graph is cut only where 1 byte is alive, not where 500 bytes are."""
    alive = [500] * 20
    alive[0], alive[7] = 0, 1
    assert cheapest_cuts(alive, [10] * 20) == (7,)


def test_nothing_is_cut_where_nothing_is_saved() -> None:
    """``cheapest_cuts`` makes no cut if there are no nodes, or if no cut lowers the memory."""
    assert cheapest_cuts([], []) == ()
    assert cheapest_cuts([0, 9, 5, 9], [1, 1, 1, 1]) == ()
