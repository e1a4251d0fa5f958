"""Cycles are searched for as before, once the records are made."""

from __future__ import annotations

import gc

import pytest

from epochcost.report.collection import without_collection


def test_the_search_goes_on_after_a_fault_too() -> None:
    """It is off inside the block alone, whatever ends it, and an inner block changes nothing."""
    with pytest.raises(KeyError), without_collection():
        with without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
