"""Errors that are messages for people."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from epochcost.errors import EpochcostError, Fault, InputError, SpecError
from epochcost.results.records import DamagedResultError, NewerResultError

_FAULTS = [Fault(Path("b.toml"), 2, 1, "second"), Fault(Path("a.toml"), 1, 7, "first")]


@pytest.mark.parametrize(
    "error",
    [
        InputError("a sentence"),
        SpecError(_FAULTS),
        DamagedResultError(_FAULTS[0]),
        NewerResultError(_FAULTS[1]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_reaches_another_process_whole(error: EpochcostError) -> None:
    """An error keeps its kind, message and fault places when another process receives it."""
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
