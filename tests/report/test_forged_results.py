"""Damaged and forged results are refused in one line, or change no figure but their own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from forged_results import damaged
from fuzzing_results import Fuzzed, run


def test_some_damages(tmp_path: Path) -> None:
    """Some of each outcome, and a site of all that publication takes, whose other figures stay."""
    fuzzed = Fuzzed(tmp_path)
    found = Counter(fuzzed.outcome(damaged(fuzzed.files, number)) for number in range(150))
    fuzzed.build()
    assert sum(found.values()) == 150
    assert len(found) == 3
    assert all(times > 5 for times in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("first", range(150, 20_150, 2_000))
def test_many_damages(first: int) -> None:
    """The same for twenty thousand others, in minutes each."""
    assert sum(run(first, 2_000).values()) == 2_000
