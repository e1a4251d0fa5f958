"""A time limit of a test grows with the load of its machine."""

from __future__ import annotations

import os

import pytest

from crowding import crowded


@pytest.mark.parametrize(("load", "factor"), [(0.0, 1.0), (2.0, 1.0), (8.0, 4.0)])
def test_a_limit_grows_with_the_programs_that_share_a_cpu(
    load: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle or filled, the machine gives what was asked; four programs a CPU take four times."""
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert crowded(10) == 10 * factor


@pytest.mark.timeout(50)
def test_the_limit_of_a_test_is_set_by_the_load(request: pytest.FixtureRequest) -> None:
    """The nearest mark is that of ``conftest``, at least as long as the test's own."""
    marks = list(request.node.iter_markers("timeout"))
    assert [mark.args[0] >= 50 for mark in marks] == [True, True]
