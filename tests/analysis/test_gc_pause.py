"""Cycles are searched for as before, once the records are made."""

from __future__ import annotations

import gc

import pytest

from epochcost.analysis.gc_pause import gc_paused


def test_an_inner_block_changes_nothing() -> None:
    """The search is off until the outermost block ends, and on again then."""
    with gc_paused():
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_search_goes_on_after_a_fault() -> None:
    """Whatever ends the block."""
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()
